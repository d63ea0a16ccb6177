// SPDX-License-Identifier: MIT
// A test's own certification authority, made with the openssl command, and redis-servers that use TLS with
// its certificates. Keys are on a curve, because they are generated quickly.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/system/load/load.h"

namespace forktail::test
{

class Authority
{
public:
	Authority()
	{
		openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
			 "-keyout", file("ca.key"), "-out", ca(), "-subj", "/CN=a test's CA", "-days", "3"});
	}
	std::string ca() const { return file("ca.pem"); }
	std::string certificate(const std::string &name) const { return file(name + ".pem"); }
	std::string key(const std::string &name) const { return file(name + ".key"); }

	// Makes NAME.pem and NAME.key for these names ("DNS:localhost,IP:127.0.0.1"). Days -1: expired
	// yesterday.
	void sign(const std::string &name, const std::string &names, int days = 2) const
	{
		openssl({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
			 key(name), "-out", file(name + ".csr"), "-subj", "/CN=" + name, "-addext",
			 "subjectAltName=" + names});
		openssl({"x509", "-req", "-in", file(name + ".csr"), "-CA", ca(), "-CAkey", file("ca.key"),
			 "-CAcreateserial", "-copy_extensions", "copy", "-days", std::to_string(days), "-out",
			 certificate(name)});
	}
	void sign_itself(const std::string &name, const std::string &names) const
	{
		openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
			 "-keyout", key(name), "-out", certificate(name), "-subj", "/CN=" + name, "-addext",
			 "subjectAltName=" + names, "-days", "2"});
	}

private:
	std::string file(const std::string &name) const { return dir_.file(name); }
	static void openssl(Arguments arguments)
	{
		arguments.insert(arguments.begin(), "openssl");
		const Result r = run(arguments);
		if (r.status != 0)
			throw std::runtime_error("openssl " + arguments[1] + ": " + r.err);
	}

	TempDir dir_;
};

// A redis-server with TLS on a port of 127.0.0.1, and without TLS on its Unix socket.
class TlsRedis
{
public:
	TlsRedis(const Authority &authority, const std::string &certificate,
		 const std::string &clients = "no", int port = free_port())
	    : port_(port)
	{
		RedisOptions options;
		options.config = {"--tls-port",		std::to_string(port),
				  "--tls-cert-file",	authority.certificate(certificate),
				  "--tls-key-file",	authority.key(certificate),
				  "--tls-ca-cert-file", authority.ca(),
				  "--tls-auth-clients", clients};
		redis_ = std::make_unique<Redis>(options);
	}
	int port() const { return port_; }
	Redis &redis() { return *redis_; }

private:
	int port_;
	std::unique_ptr<Redis> redis_;
};

} // namespace forktail::test
