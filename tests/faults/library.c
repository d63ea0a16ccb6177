/* SPDX-License-Identifier: MIT */
/* The library that victim.c runs and cuts off. */
void library_work(void);

void library_work(void)
{
	for (volatile long i = 0; i < 2000000; i++)
		;
}
