/* SPDX-License-Identifier: MIT */
/* A program built without the requirements of cmake/hardening.cmake, which the test of it must refuse. */
#include <stdio.h>

int main(int argc, char **argv)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*s", argc, argv[0]);
	puts(text);
	return 0;
}
