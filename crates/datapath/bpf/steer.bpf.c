/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Chooses TUN's queue of a packet to a UE by its flow: by addresses, and by the ports of TCP and UDP. The kernel's own hash
 * cannot be read here. */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#define IPV4_FRAGMENT 0x3fff /* more fragments, or an offset */

static __always_inline __u32 mix(__u32 hash, __u32 word)
{
	hash = (hash ^ word) * 0x9e3779b1;
	return hash ^ hash >> 15;
}

/* With the ports at that offset, which are the first word of both protocols. */
static __always_inline __u32 with_ports(struct __sk_buff *skb, __u32 hash, __u8 protocol, __u32 at)
{
	__u32 ports;

	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
		return hash;
	return bpf_skb_load_bytes(skb, at, &ports, sizeof(ports)) ? hash : mix(hash, ports);
}

SEC("socket")
int pith_steer(struct __sk_buff *skb)
{
	__u32 hash = 0;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes(skb, 0, &ip, sizeof(ip)))
			return 0;
		hash = mix(mix(hash, ip.saddr), ip.daddr);
		/* Fragments other than the first have no ports. */
		if (ip.frag_off & bpf_htons(IPV4_FRAGMENT))
			return hash;
		return with_ports(skb, hash, ip.protocol, ip.ihl * 4);
	}
	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes(skb, 0, &ip, sizeof(ip)))
			return 0;
		for (int i = 0; i < 4; i++)
			hash = mix(mix(hash, ip.saddr.s6_addr32[i]), ip.daddr.s6_addr32[i]);
		return with_ports(skb, hash, ip.nexthdr, sizeof(ip));
	}
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
