//! The table of RFC 6040, for the tests of all paths.

/// RFC 6040 figure 4: inner field, outer field, the result; `None`: drop.
pub const LEAVING: [(u8, u8, Option<u8>); 16] = [
    (0, 0, Some(0)),
    (0, 2, Some(0)),
    (0, 1, Some(0)),
    (0, 3, None),
    (2, 0, Some(2)),
    (2, 2, Some(2)),
    (2, 1, Some(1)),
    (2, 3, Some(3)),
    (1, 0, Some(1)),
    (1, 2, Some(1)),
    (1, 1, Some(1)),
    (1, 3, Some(3)),
    (3, 0, Some(3)),
    (3, 2, Some(3)),
    (3, 1, Some(3)),
    (3, 3, Some(3)),
];
