/* SPDX-License-Identifier: MIT */
/* Which of a Redis Cluster's 16384 hash slots a key belongs to: CRC16 (XMODEM: polynomial 0x1021, from 0)
 * modulo 16384 of the name, or of its hash tag: the text between the first "{" and the first "}" after it,
 * unless that is empty. Source: the Redis Cluster specification, "Key distribution model" and "Hash tags". */
#ifndef FORKTAIL_LOADGEN_SLOTS_H
#define FORKTAIL_LOADGEN_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CLUSTER_SLOTS = 16384 };

uint16_t crc16(const char *bytes, size_t length);
uint16_t cluster_slot(const char *key, size_t length);

#ifdef __cplusplus
}
#endif
#endif
