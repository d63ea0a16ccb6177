// SPDX-License-Identifier: MIT
// What a function prints to a C stream.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace forktail::test
{

inline std::string printed(const std::function<void(FILE *)> &print)
{
	char *text = nullptr;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	print(to);
	fclose(to);
	std::string all(text, size);
	free(text);
	return all;
}

} // namespace forktail::test
