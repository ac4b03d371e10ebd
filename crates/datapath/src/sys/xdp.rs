//! XDP attachments, and properties of interfaces.

use super::check;
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Where in the kernel a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// In the driver.
    Native,
    /// After the driver, for interfaces whose driver has no XDP.
    Generic,
}

/// Attaches a program to an interface, until the returned descriptor is closed.
pub fn attach_xdp(program: BorrowedFd<'_>, interface: u32, hook: Hook) -> io::Result<OwnedFd> {
    let flags = match hook {
        Hook::Native => libbpf_sys::XDP_FLAGS_DRV_MODE,
        Hook::Generic => libbpf_sys::XDP_FLAGS_SKB_MODE,
    };
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags,
        ..Default::default()
    };
    // SAFETY: `options` says its own size and lives during the call; the descriptor it answers is ours alone.
    unsafe {
        let (program, interface) = (program.as_raw_fd(), interface as libc::c_int);
        let link = libbpf_sys::bpf_link_create(program, interface, libbpf_sys::BPF_XDP, &raw const options);
        if link < 0 {
            return Err(io::Error::from_raw_os_error(-link));
        }
        Ok(OwnedFd::from_raw_fd(link))
    }
}

/// Runs a program on one frame, on this thread's CPU; returns the verdict.
#[cfg(test)]
pub fn run_program(program: BorrowedFd<'_>, frame: &[u8]) -> io::Result<u32> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        ..Default::default()
    };
    // SAFETY: `options` says its own size and lives during the call, as does the frame, which the kernel copies.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(options.retval) }
}

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 3;
const ETHTOOL_GFLAGS: u32 = 0x25;
/// `ETH_FLAG_RXVLAN`.
const STRIPS_VLAN: u32 = 1 << 8;
const SIOCGIFVLAN: libc::c_ulong = 0x8982;
const GET_VLAN_REALDEV_NAME: libc::c_int = 8;
const GET_VLAN_VID: libc::c_int = 9;

/// The start of `struct ethtool_drvinfo`, and space for the rest.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

pub fn driver_of(interface: &str) -> io::Result<String> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut info = DriverInfo { command: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
    let mut request = interface_request(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: the request names an interface and points to a buffer at least as long as `ethtool_drvinfo`.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })?;
    Ok(text(&info.driver))
}

/// Whether a device removes the VLAN tag of a received frame before XDP sees the frame.
pub fn strips_vlan_tags(device: &str) -> io::Result<bool> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    // struct ethtool_value
    let mut flags = [ETHTOOL_GFLAGS, 0];
    let mut request = interface_request(device)?;
    request.ifr_ifru.ifru_data = (&raw mut flags).cast();
    // SAFETY: the request names an interface and points to a buffer as long as `ethtool_value`.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })?;
    let [_, flags] = flags;
    Ok(flags & STRIPS_VLAN != 0)
}

/// An interface's MAC.
pub fn link_address(interface: &str) -> io::Result<[u8; 6]> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut request = interface_request(interface)?;
    // SAFETY: the request names an interface; of its union the kernel fills in the link address, six bytes at least.
    unsafe {
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request))?;
        let [a, b, c, d, e, f, ..] = request.ifr_ifru.ifru_hwaddr.sa_data.map(|octet| octet as u8);
        Ok([a, b, c, d, e, f])
    }
}

/// The IP addresses of all interfaces, each with its interface's name.
pub fn interface_addresses() -> io::Result<Vec<(String, IpAddr)>> {
    let mut found = Vec::new();
    // SAFETY: the kernel's list is valid until it is freed, and what it points to with it; an address is as long as
    // its family says.
    unsafe {
        let mut first = std::ptr::null_mut();
        check(libc::getifaddrs(&raw mut first))?;
        let mut entry = first;
        while let Some(one) = entry.as_ref() {
            let name = CStr::from_ptr(one.ifa_name).to_string_lossy().into_owned();
            found.extend(ip_address(one.ifa_addr).map(|address| (name, address)));
            entry = one.ifa_next;
        }
        libc::freeifaddrs(first);
    }
    Ok(found)
}

/// # Safety
///
/// `address` is null, or as long as its family says.
unsafe fn ip_address(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as the caller promises; the kernel aligns addresses for any family.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let v4 = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()).into())
            }
            libc::AF_INET6 => {
                let v6 = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

/// `struct vlan_ioctl_args`; its union is a name or a number.
#[repr(C)]
struct VlanArguments {
    command: libc::c_int,
    device: [u8; 24],
    answer: [u8; 24],
    quality: libc::c_short,
}

/// The device and VLAN ID of a VLAN interface; `None` for other interfaces.
pub fn vlan_of(interface: &str) -> Option<(String, u16)> {
    let parent = text(&ask_vlan(interface, GET_VLAN_REALDEV_NAME).ok()?);
    let id = ask_vlan(interface, GET_VLAN_VID).ok()?;
    let number = id.first_chunk().map(|id| i32::from_ne_bytes(*id))?;
    Some((parent, u16::try_from(number).ok()?))
}

fn ask_vlan(interface: &str, command: libc::c_int) -> io::Result<[u8; 24]> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut arguments = VlanArguments { command, device: [0; 24], answer: [0; 24], quality: 0 };
    let name = interface.as_bytes();
    arguments.device.get_mut(..name.len()).ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(name);
    // SAFETY: the arguments are laid out as `vlan_ioctl_args`, and the name ends with a zero byte.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGIFVLAN as _, &raw mut arguments) })?;
    Ok(arguments.answer)
}

fn interface_request(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn text(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_no_vlan_and_no_name_is_too_long_to_ask_for() {
        assert_eq!(vlan_of("lo"), None);
        assert!(driver_of("a-name-that-is-too-long-for-any").is_err());
        assert!(driver_of("no-such").is_err());
        assert!(link_address("no-such").is_err());
        assert!(strips_vlan_tags("no-such").is_err());
        assert!(strips_vlan_tags("lo").is_ok());
    }

    #[test]
    fn loopback_has_its_address_and_no_link_address() {
        let loopback = ("lo".to_owned(), IpAddr::from([127, 0, 0, 1]));
        assert!(interface_addresses().unwrap().contains(&loopback));
        assert_eq!(link_address("lo").unwrap(), [0; 6]);
    }
}
