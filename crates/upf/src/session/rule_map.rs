//! The rules of a kind, by id. There are many sessions with few rules each, so a sorted vector takes less
//! memory than a tree, whose nodes have room for eleven entries.

/// A map with few entries.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for RuleMap<K, V> {
    fn default() -> Self {
        RuleMap(Vec::new())
    }
}

impl<K: Ord + Copy, V> RuleMap<K, V> {
    fn place(&self, id: K) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |(id, _)| *id)
    }

    pub fn get(&self, id: K) -> Option<&V> {
        let place = self.place(id).ok()?;
        self.0.get(place).map(|(_, rule)| rule)
    }

    pub fn get_mut(&mut self, id: K) -> Option<&mut V> {
        let place = self.place(id).ok()?;
        self.0.get_mut(place).map(|(_, rule)| rule)
    }

    pub fn contains(&self, id: K) -> bool {
        self.place(id).is_ok()
    }

    /// Allocates memory for `count` further rules.
    pub fn reserve(&mut self, count: usize) {
        self.0.reserve_exact(count);
    }

    /// Adds a rule, unless the id exists. Returns whether it was added.
    pub fn add(&mut self, id: K, rule: V) -> bool {
        let Err(place) = self.place(id) else { return false };
        self.0.reserve_exact(1);
        self.0.insert(place, (id, rule));
        true
    }

    pub fn remove(&mut self, id: K) -> Option<V> {
        let place = self.place(id).ok()?;
        Some(self.0.remove(place).1)
    }

    /// Keeps the rules for which `wanted` is true.
    pub fn retain(&mut self, wanted: impl Fn(K, &V) -> bool) {
        self.0.retain(|(id, rule)| wanted(*id, rule));
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ids and rules, in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.0.iter().map(|(id, rule)| (*id, rule))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        self.0.iter_mut().map(|(id, rule)| (*id, rule))
    }

    pub fn ids(&self) -> impl Iterator<Item = K> {
        self.0.iter().map(|(id, _)| *id)
    }

    /// Rules, in the order of ids.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, rule)| rule)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, rule)| rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_in_order_and_added_once() {
        let mut rules = RuleMap::default();
        assert!([3, 1, 2].into_iter().all(|id| rules.add(id, id * 10)));
        assert!(!rules.add(2, 99));
        assert_eq!(rules.iter().collect::<Vec<_>>(), [(1, &10), (2, &20), (3, &30)]);
        assert_eq!((rules.remove(2), rules.get(2), rules.get(3)), (Some(20), None, Some(&30)));
    }
}
