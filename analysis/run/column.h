// SPDX-License-Identifier: MIT
// An append-only array for tens of millions of plain values. std::vector copies when it grows, so that a log
// of 10 million requests briefly needs twice its memory. realloc of a large block moves pages instead of
// bytes, and its unused tail takes no memory. This class also does not fill values with zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

namespace forktail::analysis
{

template <typename T> struct Column {
	static_assert(std::is_trivially_copyable_v<T>);

	Column() = default;
	Column(const Column &other) { Append(other.data_, other.size_); }
	Column(Column &&other) noexcept { Swap(other); }
	Column &operator=(Column other) noexcept
	{
		Swap(other);
		return *this;
	}
	~Column() { free(data_); }

	size_t size() const { return size_; }
	bool empty() const { return size_ == 0; }
	T *data() { return data_; }
	const T *data() const { return data_; }
	T *begin() { return data_; }
	T *end() { return data_ + size_; }
	const T *begin() const { return data_; }
	const T *end() const { return data_ + size_; }
	T &back() { return data_[size_ - 1]; }
	const T &back() const { return data_[size_ - 1]; }
	T &operator[](size_t i) { return data_[i]; }
	const T &operator[](size_t i) const { return data_[i]; }

	void push_back(const T &value)
	{
		T copy = value;
		*Extend(1) = copy;
	}
	void Append(const T *values, size_t count)
	{
		if (count)
			memcpy(Extend(count), values, count * sizeof(T));
	}
	// Appends `count` uninitialised values and returns the first.
	T *Extend(size_t count)
	{
		if (size_ + count > capacity_) {
			size_t want = capacity_ + capacity_ / 2;
			if (want < size_ + count)
				want = size_ + count;
			if (want < 1024)
				want = 1024;
			void *moved = realloc(static_cast<void *>(data_), want * sizeof(T));
			if (!moved)
				throw std::bad_alloc();
			data_ = static_cast<T *>(moved);
			capacity_ = want;
			AdviseHugePages();
		}
		size_ += count;
		return data_ + size_ - count;
	}
	// Drops values from the end.
	void Truncate(size_t count) { size_ = count < size_ ? count : size_; }

private:
	// With 4 kB pages, page faults of a log of gigabytes would take longer than reading it.
	void AdviseHugePages()
	{
		constexpr uintptr_t huge = 2 << 20;
		uintptr_t first = (reinterpret_cast<uintptr_t>(data_) + huge - 1) & ~(huge - 1);
		uintptr_t end = reinterpret_cast<uintptr_t>(data_ + capacity_) & ~(huge - 1);
		if (end > first + 4 * huge)
			madvise(reinterpret_cast<void *>(first), end - first, MADV_HUGEPAGE);
	}
	void Swap(Column &other)
	{
		std::swap(data_, other.data_);
		std::swap(size_, other.size_);
		std::swap(capacity_, other.capacity_);
	}

	T *data_ = nullptr;
	size_t size_ = 0;
	size_t capacity_ = 0;
};

} // namespace forktail::analysis
