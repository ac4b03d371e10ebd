/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#include "tables.h"
char _license[] SEC("license") = "Dual BSD/GPL";
