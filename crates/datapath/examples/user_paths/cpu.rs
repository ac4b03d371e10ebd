//! CPU time by thread: of this process's threads, and of kernel threads that work for it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

/// CPU time of a task; `None` if it has ended.
pub fn used_by(task: &str) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{task}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// This process's threads of that name.
pub fn threads_of(name: &str) -> Vec<u32> {
    named("/proc/self/task", |comm| comm == name)
}

/// CPU time of a thread of this process.
pub fn used_by_thread(thread: u32) -> Duration {
    used_by(&format!("self/task/{thread}")).unwrap_or_default()
}

fn named(folder: &str, is_it: impl Fn(&str) -> bool) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it = |id: &u32| {
        std::fs::read_to_string(format!("{folder}/{id}/comm")).is_ok_and(|comm| is_it(comm.trim()))
    };
    numbers.filter(is_it).collect()
}

/// CPU time of the thread to which the kernel defers work of that CPU.
pub fn put_off(cpu: usize) -> Duration {
    thread_local! { static THREADS: RefCell<HashMap<usize, u32>> = RefCell::default(); }
    let find = |threads: &mut HashMap<_, _>| {
        *threads.entry(cpu).or_insert_with(|| named("/proc", |comm| comm == format!("ksoftirqd/{cpu}"))[0])
    };
    let thread = THREADS.with_borrow_mut(find);
    used_by(&thread.to_string()).expect("every CPU has such a thread")
}

/// Pins this thread, and those that it starts, to one CPU.
pub fn pin(cpu: usize) {
    // SAFETY: all zero is an empty set; the calls read and write that set only.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Sets the nice value of this thread.
pub fn set_nice(nice: libc::c_int) {
    // SAFETY: takes no pointers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}
