/* SPDX-License-Identifier: MIT */
/* The reader of CSV recordings under libFuzzer. See check_replay.h for the checked property. */
#include "tests/fuzz/check_replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_check_reader(replay_csv_next, data, size);
	return 0;
}
