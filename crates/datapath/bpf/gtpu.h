/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* GTP-U (TS 29.281): reads and writes the header of a G-PDU. */
#pragma once
#include "packet.h"

#define GTPU_PORT 2152
#define GTPU_G_PDU 255
#define GTPU_VERSION 0xf0 /* version and protocol type */
#define GTPU_V1 0x30
#define GTPU_EXTENSION 4 /* flag E */
#define GTPU_OPTIONS 7   /* E, S, PN: the four octets of options are there */
#define PDU_SESSION_CONTAINER 0x85
#define EXTENSION_REQUIRED 0x80 /* the endpoint has to comprehend that type (TS 29.281 figure 5.2.1-2) */
#define MAX_EXTENSIONS 4
#define PDU_TYPE_UPLINK 0x10
#define NO_QFI 0xff

struct gtpu {
	u8 flags;
	u8 type;
	u16 length; /* of the message after its first eight octets; wire */
	u32 teid;   /* wire */
};

struct gtpu_options {
	u16 sequence;
	u8 n_pdu;
	u8 next;
};

/* An extension header of one 4-octet unit, such as the PDU Session Container of a user packet (TS 38.415
 * 5.5.2). */
struct gtpu_container {
	u8 units;
	u8 type; /* upper half; 0: downlink, 1: uplink */
	u8 qfi;  /* lower six bits */
	u8 next;
};

#define CONTAINER_TYPE 0xf0
#define CONTAINER_UPLINK 0x10
#define CONTAINER_QMP 0x08 /* of uplink type: time stamps follow */
#define CONTAINER_PPP 0x80 /* in the octet of the QFI, of downlink type: a paging policy follows */

/* A decoded G-PDU header. */
struct gpdu {
	u32 teid;
	u32 length; /* of the user packet */
	u8 qfi;     /* NO_QFI: none */
	u8 v6;      /* the tunnel is over IPv6 */
	u8 ecn;     /* of the outer packet */
	struct address source; /* of the outer packet */
	u8 sound;   /* the outer IPv4 header's checksum is correct, or there is no such header */
};

/* Reads the extension headers; `next` is the type of the first. Returns their octets, or -1. */
INLINE int take_extensions(struct cursor *cursor, u8 next, u8 *qfi)
{
	int octets = 0;
#pragma unroll
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		if (!next)
			return octets;
		if (next & EXTENSION_REQUIRED && next != PDU_SESSION_CONTAINER)
			return -1;
		struct gtpu_container *header = take(cursor, sizeof(*header));
		/* Longer containers are rare and left to user space. */
		if (!header || header->units != 1)
			return -1;
		if (next == PDU_SESSION_CONTAINER) {
			/* A container with optional fields or of an unknown type is left to user space. */
			u8 type = header->type & CONTAINER_TYPE;
			if (type > CONTAINER_UPLINK || (type && header->type & CONTAINER_QMP) ||
			    (!type && header->qfi & CONTAINER_PPP))
				return -1;
			if (*qfi == NO_QFI)
				*qfi = header->qfi & 0x3f;
		}
		octets += sizeof(*header);
		next = header->next;
	}
	return next ? -1 : octets;
}

/* Reads a G-PDU from a UDP payload of `room` bytes. */
INLINE int take_gpdu(struct cursor *cursor, struct gpdu *gpdu, u32 room)
{
	struct gtpu *gtpu = take(cursor, sizeof(*gtpu));
	if (!gtpu || (gtpu->flags & GTPU_VERSION) != GTPU_V1 || gtpu->type != GTPU_G_PDU)
		return 0;
	u32 length = bpf_ntohs(gtpu->length);
	gpdu->teid = bpf_ntohl(gtpu->teid);
	gpdu->qfi = NO_QFI;
	/* A message shorter than its datagram is malformed and left to user space. */
	if (length + sizeof(*gtpu) != room)
		return 0;
	if (gtpu->flags & GTPU_OPTIONS) {
		struct gtpu_options *options = take(cursor, sizeof(*options));
		if (!options)
			return 0;
		int octets = 0;
		if (gtpu->flags & GTPU_EXTENSION)
			octets = take_extensions(cursor, options->next, &gpdu->qfi);
		if (octets < 0)
			return 0;
		octets += sizeof(*options);
		if (length < octets)
			return 0;
		length -= octets;
	}
	gpdu->length = length;
	return 1;
}

/* A packet to be encapsulated. */
struct departure {
	u32 flow; /* a hash of its flow; 0: its outer headers don't depend on it */
	u16 at;   /* in the frame */
	u16 length;
	u16 sum; /* of the packet's words, for the UDP checksum over IPv6 */
	u16 id;  /* of the outer IPv4 header */
	u8 qfi;
	u8 ecn; /* of the outer header */
};

#define FIRST_FLOW_PORT 49152
#define FLOW_LABEL 0xfffff

/* The UDP source port by a flow's hash, wire. */
INLINE u16 source_port(u32 flow)
{
	return flow ? bpf_htons(FIRST_FLOW_PORT | flow >> 18) : bpf_htons(GTPU_PORT);
}

/* Outer IP, UDP and GTP-U header. */
struct tunnel_v4 {
	struct iphdr ip;
	struct udphdr udp;
	struct gtpu gtpu;
};

struct tunnel_v6 {
	struct ipv6hdr ip;
	struct udphdr udp;
	struct gtpu gtpu;
};

/* Optional fields and PDU Session Container of a packet with a QFI. */
struct marking {
	struct gtpu_options options;
	struct gtpu_container container;
};

/* The QFI of a forwarded packet: the rule's, otherwise the received one. */
INLINE u8 mark_of(const struct rule *rule, u8 came_with)
{
	return rule->flags & RULE_HAS_QFI ? rule->qfi : came_with;
}

/* The length of all outer headers without the link header. */
INLINE u32 header_len(const struct rule *rule, u8 qfi)
{
	u32 outer = rule->flags & RULE_PEER_V6 ? sizeof(struct tunnel_v6) : sizeof(struct tunnel_v4);
	return outer + (qfi == NO_QFI ? 0 : sizeof(struct marking));
}

/* Folds a sum of 16-bit words to 16 bits. */
INLINE u16 fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Four octets of any type. */
typedef u32 __attribute__((may_alias)) word;

INLINE u64 sum_words(const void *octets, u32 count)
{
	const word *words = octets;
	u64 sum = 0;
#pragma unroll
	for (u32 i = 0; i < count; i++)
		sum += words[i];
	return sum;
}

/* Whether an IPv4 header without options has a correct checksum. */
INLINE int is_right(const struct iphdr *ip)
{
	return fold(sum_words(ip, sizeof(*ip) / sizeof(word))) == 0xffff;
}

INLINE u16 ipv4_checksum(const struct iphdr *ip)
{
	const u16 __attribute__((may_alias)) *words = (const void *)ip;
	u32 sum = 0;
#pragma unroll
	for (int i = 0; i < sizeof(*ip) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

INLINE struct udphdr tunnel_udp(u32 length, u16 source)
{
	return (struct udphdr){
		.source = source,
		.dest = bpf_htons(GTPU_PORT),
		.len = bpf_htons(length),
	};
}

/* The first eight octets of a G-PDU for a rule's tunnel; `rest` octets follow them. */
INLINE struct gtpu tunnel_gtpu(const struct rule *rule, u32 rest, u8 qfi)
{
	return (struct gtpu){
		.flags = qfi == NO_QFI ? GTPU_V1 : GTPU_V1 | GTPU_EXTENSION,
		.type = GTPU_G_PDU,
		.length = bpf_htons(rest),
		.teid = bpf_htonl(rule->tunnel_teid),
	};
}

/* Writes the outer headers of a rule's tunnel; `rest` octets follow them. The UDP checksum over IPv4 is
 * zero (RFC 768). */
INLINE void write_tunnel_v4(struct tunnel_v4 *header, const struct rule *rule, u32 rest, const struct departure *leaves)
{
	u32 length = sizeof(*header) + rest;
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = rule->dscp << 2 | leaves->ecn,
		.tot_len = bpf_htons(length),
		.id = leaves->id,
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = settings.n3_v4[0],
		.daddr = rule->peer[0],
	};
	ip.check = ipv4_checksum(&ip);
	header->ip = ip;
	header->udp = tunnel_udp(length - sizeof(struct iphdr), source_port(leaves->flow));
	header->gtpu = tunnel_gtpu(rule, rest, leaves->qfi);
}

INLINE void set_address(u32 *words, const struct address *address)
{
	words[0] = address->high;
	words[1] = address->high >> 32;
	words[2] = address->low;
	words[3] = address->low >> 32;
}

/* As write_tunnel_v4(), over IPv6, with the UDP checksum: `sum` is that of the bytes after the headers. The headers are written
 * directly: a copy would need half of the stack that the verifier has left for this function. */
INLINE void write_tunnel_v6(struct tunnel_v6 *header, const struct rule *rule, u32 rest, const struct departure *leaves, u64 sum)
{
	u32 length = sizeof(header->udp) + sizeof(header->gtpu) + rest;
	u32 tos = rule->dscp << 2 | leaves->ecn;
	struct address from = { settings.n3_v6[0].high, settings.n3_v6[0].low };
	word *first = (void *)&header->ip;
	*first = bpf_htonl(6u << 28 | tos << 20 | (leaves->flow & FLOW_LABEL));
	header->ip.payload_len = bpf_htons(length);
	header->ip.nexthdr = IPPROTO_UDP;
	header->ip.hop_limit = 64;
	set_address(header->ip.saddr.in6_u.u6_addr32, &from);
#pragma unroll
	for (int i = 0; i < 4; i++)
		header->ip.daddr.in6_u.u6_addr32[i] = rule->peer[i];
	header->udp = tunnel_udp(length, source_port(leaves->flow));
	header->gtpu = tunnel_gtpu(rule, rest, leaves->qfi);
	/* The pseudo header sums addresses, length and protocol (RFC 8200 8.1). */
	sum += sum_words(header->ip.saddr.in6_u.u6_addr32, 4) + sum_words(header->ip.daddr.in6_u.u6_addr32, 4);
	sum += bpf_htonl(length) + (u64)bpf_htonl(IPPROTO_UDP);
	sum += sum_words(&header->udp, 2) + sum_words(&header->gtpu, 2);
	u16 check = ~fold(sum);
	header->udp.check = check ? check : 0xffff;
}

/* The PDU type is uplink towards another UPF, downlink towards a gNB or another UPF (TS 38.415 5.5.2). */
INLINE struct marking marking_of(const struct rule *rule, u8 qfi)
{
	u8 type = rule->flags & RULE_DOWNLINK ? 0 : PDU_TYPE_UPLINK;
	return (struct marking){
		.options = { .next = PDU_SESSION_CONTAINER },
		.container = { .units = 1, .type = type, .qfi = qfi },
	};
}
