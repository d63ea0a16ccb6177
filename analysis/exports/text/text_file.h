// SPDX-License-Identifier: MIT
// A text file that is written piece by piece. The first error stays set.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace forktail::analysis::exports
{

class TextFile
{
public:
	explicit TextFile(std::string path) : path_(std::move(path)), file_(fopen(path_.c_str(), "we"))
	{
		if (!file_)
			error_ = errno;
	}
	~TextFile() { Close(); }
	TextFile(const TextFile &) = delete;
	TextFile &operator=(const TextFile &) = delete;
	bool Put(const std::string &text)
	{
		errno = 0;
		if (!error_ && fwrite(text.data(), 1, text.size(), file_) != text.size())
			error_ = errno ? errno : EIO;
		return error_ == 0;
	}
	bool Close()
	{
		if (file_ && fclose(file_) != 0 && !error_)
			error_ = errno;
		file_ = nullptr;
		return error_ == 0;
	}
	// After a call returned false: the reason, one sentence.
	std::string Why() const { return "cannot write " + path_ + ": " + strerror(error_); }

private:
	std::string path_;
	FILE *file_;
	int error_ = 0;
};

} // namespace forktail::analysis::exports
