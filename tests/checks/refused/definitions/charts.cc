// SPDX-License-Identifier: MIT
// The other file. Its unnamed namespace, and the Sum with other parameters, are no second definitions.
namespace forktail
{

class Series final
{
};

enum class Step { First, Last };

namespace
{

int Sum(const Series &series, int begin)
{
	return begin;
}

} // namespace

template <typename T> int Sum(const T &one, int from)
{
	return from;
}

int Sum(int one, int other)
{
	return one + other;
}

} // namespace forktail
