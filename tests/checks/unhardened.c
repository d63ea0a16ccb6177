/* SPDX-License-Identifier: MIT */
/* A program built without all that cmake/hardening.cmake asks for: what the test of it has to refuse. */
#include <stdio.h>

int main(int argc, char **argv)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*s", argc, argv[0]);
	puts(text);
	return 0;
}
