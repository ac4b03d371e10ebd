/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* GTP-U (TS 29.281): the header of a G-PDU, read and written. */
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
#define MOST_EXTENSIONS 4
#define NO_QFI 0xff

struct gtpu {
	u8 flags;
	u8 type;
	u16 length; /* of what follows the first eight octets; wire */
	u32 teid;   /* wire */
};

struct gtpu_options {
	u16 sequence;
	u8 n_pdu;
	u8 next;
};

/* An extension header of one unit of four octets, which the PDU Session Container of a user's packet is
 * (TS 38.415 5.5.2). */
struct gtpu_container {
	u8 units;
	u8 type; /* upper half; 0: downlink, 1: uplink */
	u8 qfi;  /* lower six bits */
	u8 next;
};

/* What a G-PDU's header says. */
struct gpdu {
	u32 teid;
	u32 length; /* of the user's packet */
	u8 qfi;     /* NO_QFI: none */
};

/* The extension headers: `next` is the type of the first. Answers their octets, or -1. */
INLINE int take_extensions(struct cursor *cursor, u8 next, u8 *qfi)
{
	int octets = 0;
#pragma unroll
	for (int i = 0; i < MOST_EXTENSIONS; i++) {
		if (!next)
			return octets;
		if (next & EXTENSION_REQUIRED && next != PDU_SESSION_CONTAINER)
			return -1;
		struct gtpu_container *header = take(cursor, sizeof(*header));
		/* Longer ones are rare, and user space's. */
		if (!header || header->units != 1)
			return -1;
		if (next == PDU_SESSION_CONTAINER && *qfi == NO_QFI)
			*qfi = header->qfi & 0x3f;
		octets += sizeof(*header);
		next = header->next;
	}
	return next ? -1 : octets;
}

/* A G-PDU in a UDP payload of `room` bytes. */
INLINE int take_gpdu(struct cursor *cursor, struct gpdu *gpdu, u32 room)
{
	struct gtpu *gtpu = take(cursor, sizeof(*gtpu));
	if (!gtpu || (gtpu->flags & GTPU_VERSION) != GTPU_V1 || gtpu->type != GTPU_G_PDU)
		return 0;
	u32 length = bpf_ntohs(gtpu->length);
	gpdu->teid = bpf_ntohl(gtpu->teid);
	gpdu->qfi = NO_QFI;
	/* What follows the message is odd, and user space's. */
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

/* IPv4, UDP and GTP-U before a packet of `length` bytes for a UE. */
struct tunnel_v4 {
	struct iphdr ip;
	struct udphdr udp;
	struct gtpu gtpu;
};

/* What more there is where the packet has a QoS flow. */
struct marking {
	struct gtpu_options options;
	struct gtpu_container container;
};

INLINE u16 ipv4_checksum(const struct iphdr *ip)
{
	const u16 *words = (const u16 *)ip;
	u32 sum = 0;
#pragma unroll
	for (int i = 0; i < sizeof(*ip) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Writes the header of a G-PDU for a rule's tunnel; `rest` is how many bytes follow it. The checksum of UDP
 * over IPv4 may be left out. */
INLINE void write_tunnel_v4(struct tunnel_v4 *header, const struct rule *rule, u32 rest, u16 id)
{
	u32 length = sizeof(*header) + rest;
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = rule->dscp << 2,
		.tot_len = bpf_htons(length),
		.id = id,
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = settings.n3_v4[0],
		.daddr = rule->peer,
	};
	ip.check = ipv4_checksum(&ip);
	header->ip = ip;
	header->udp = (struct udphdr){
		.source = bpf_htons(GTPU_PORT),
		.dest = bpf_htons(GTPU_PORT),
		.len = bpf_htons(length - sizeof(struct iphdr)),
	};
	header->gtpu = (struct gtpu){
		.flags = rule->flags & RULE_HAS_QFI ? GTPU_V1 | GTPU_EXTENSION : GTPU_V1,
		.type = GTPU_G_PDU,
		.length = bpf_htons(rest),
		.teid = bpf_htonl(rule->tunnel_teid),
	};
}

INLINE void write_marking(struct marking *marking, const struct rule *rule)
{
	marking->options = (struct gtpu_options){ .next = PDU_SESSION_CONTAINER };
	marking->container = (struct gtpu_container){ .units = 1, .qfi = rule->qfi };
}
