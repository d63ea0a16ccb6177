# SPDX-License-Identifier: MIT
"""TLS, with real servers: every way of sending gets every answer. Untrusted servers are refused, with one sentence that
gives the reason. Broken connections are reopened over TLS, and only to trusted servers.
"""

import select
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from load_run import check_refused

from forktail.servers import Endpoint
from forktail.servers.listen import connect_to, free_port
from harness import Recording, eventually, ft, kill, load, run_program
from server_counts import info

HERE = "DNS:localhost,IP:127.0.0.1"


class Authority:
    """A certification authority, made with the openssl command. Keys are on a curve, because they are generated
    quickly."""

    def __init__(self, directory):
        self._directory = directory
        self._make("ca", "req", "-x509", "-subj", "/CN=a test's CA", "-days", 3, "-out", self.certificate("ca"))

    def certificate(self, name):
        return self._directory / f"{name}.pem"

    def key(self, name):
        return self._directory / f"{name}.key"

    @property
    def trusted(self):
        """The options with which a load trusts it."""
        return ["-q", "--tls", "--cacert", self.certificate("ca")]

    def at(self, server):
        """The options for a load on a server that it trusts."""
        return ["-p", server.tls_port, *self.trusted]

    def sign(self, name, names, days=2):
        """Makes a certificate and a key for these names (HERE). Days -1: expired yesterday."""
        request = self._directory / f"{name}.csr"
        self._make(name, "req", "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}", "-out", request)
        self._openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate("ca"), "-CAkey", self.key("ca"), "-CAcreateserial",
            "-copy_extensions", "copy", "-days", days, "-out", self.certificate(name),
        )  # fmt: skip

    def sign_itself(self, name, names):
        """Likewise, signed with its own key."""
        more = ["-addext", f"subjectAltName={names}", "-days", 2, "-out", self.certificate(name)]
        self._make(name, "req", "-x509", "-subj", f"/CN={name}", *more)

    def _make(self, name, *words):
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key(name)]
        self._openssl(*words, *curve)

    @staticmethod
    def _openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """Its certificates: server is for this host, other for another one, expired and odd are bad, self and stranger
    signed themselves."""
    made = Authority(tmp_path_factory.mktemp("authority"))
    made.sign("server", HERE)
    made.sign("other", "DNS:db.example,IP:10.9.8.7")
    made.sign("expired", HERE, days=-1)
    made.sign("odd", "DER:300c8705010203040582036f6464")  # an address of 5 bytes; then a name
    made.sign("client", "DNS:client")
    made.sign_itself("self", HERE)
    made.sign_itself("stranger", "DNS:db.example")
    return made


def tls_redis(serve, authority, certificate, clients="no", port=0):
    """A redis-server with TLS on .tls_port of 127.0.0.1, and without TLS on its Unix socket."""
    port = port or free_port()
    server = serve(
        "redis", "--tls-port", str(port), "--tls-cert-file", str(authority.certificate(certificate)), "--tls-key-file",
        str(authority.key(certificate)), "--tls-ca-cert-file", str(authority.certificate("ca")), "--tls-auth-clients",
        clients,
    )  # fmt: skip
    server.tls_port = port
    return server


@pytest.fixture(scope="module")
def _server(module_serve, authority):
    return tls_redis(module_serve, authority, "server")


@pytest.fixture
def server(_server):
    """A trusted server, for tests that change no setting and kill nothing."""
    _server.ask("FLUSHALL")
    return _server


@pytest.fixture
def tls(serve, authority):
    """tls(certificate): a server of the test."""
    return lambda *words, **options: tls_redis(serve, authority, *words, **options)


def check_accepted(*words, **options):
    ran = load("-q", *words, **options)
    assert ran.status == 0, ran.err


@pytest.mark.parametrize(
    "way",
    [
        "",
        "-h localhost",
        "-P 16 -d 20000 -r 100 --verify",
        "-c 2 -P 100 -d 100000 -r 20 --verify -n 1000",
        "--threads 2 --idle 5",
        "--reconnect 10 -n 2000",
        "--reconnect 10 -n 2000 --rate 2000",
        "--blocking -c 4",
        "--blocking -c 4 --reconnect 10 -n 1000",
        "--no-wait -c 2",
        "--no-wait -c 2 -P 100 -d 100000 -r 20 --verify -n 1000",
        "--rate 5000 -n 5000 -P 4",
        "-t lrange_600,spop -n 2000",
    ],
)
def test_every_way_of_sending_gets_every_answer_over_tls_verified(server, authority, start_load, way):
    run = start_load(*authority.at(server), "-n", 10000, *way.split(), observer=True)
    assert run.wait().status == 0, run.err
    assert run.json["tls"] == "verified"
    assert {one["total"]["errors"] for one in run.json["runs"]} == {0}
    assert ", TLS\n" in run.out


def test_it_was_tls(server):
    # The plain port is closed, and this one does not answer without TLS.
    assert info(server)["tcp_port"] == str(server.tls_port)
    check_refused("--tls", "-p", server.tls_port)


@pytest.mark.parametrize(
    ("certificate", "words", "says"),
    [
        ("other", "", "has a certificate for db.example, 10.9.8.7, not for 127.0.0.1"),
        ("other", "-h localhost", "not for localhost"),
        ("other", "--sni db2.example", "not for db2.example"),
        ("odd", "", "has a certificate for odd, not for 127.0.0.1"),
        ("expired", "", "has a certificate that expired on 20"),
        ("self", "", "has a self-signed certificate"),
    ],
)
def test_an_untrusted_server_is_refused_with_the_reason(tls, authority, certificate, words, says):
    check_refused(says, *authority.at(tls(certificate)), *words.split())


def test_another_name_and_another_ca_may_be_trusted(tls, authority):
    check_accepted(*authority.at(tls("other")), "-n", 100, "--sni", "db.example")
    own = authority.certificate("self")
    check_accepted("-p", tls("self").tls_port, "--tls", "-n", 100, "--cacert", own)


def test_another_cas_certificate_is_refused(server, tmp_path):
    Authority(tmp_path)
    stranger = tmp_path / "ca.pem"
    port = ["-p", server.tls_port, "--tls"]
    check_refused("from a CA that is not among the CAs in", *port, "--cacert", stranger)
    check_refused("from a CA that is not among the CAs that this host trusts", *port)
    check_refused("from a CA that is not among", "-u", f"rediss://127.0.0.1:{server.tls_port}")


def test_insecure_trusts_every_server_and_the_output_says_so(tls, start_load):
    run = start_load("-p", tls("stranger").tls_port, "--tls", "--insecure", "-n", 1000, observer=True).done()
    assert "TLS not verified (--insecure)" in run.out
    assert run.json["tls"] == "not verified"
    assert run.log.manifest["server_info"][0]["tls"] == "not verified"


def test_a_server_that_wants_a_clients_certificate_gets_it_or_its_demand_is_reported(tls, authority):
    at = authority.at(tls("server", clients="yes"))

    def pair(certificate, key):
        return ["--cert", authority.certificate(certificate), "--key", authority.key(key)]

    check_refused("requires a client certificate. Use --cert and --key", *at)
    check_refused("rejected the client certificate", *at, *pair("self", "self"))
    check_refused("cannot use the private key", *at, *pair("client", "self"))
    check_accepted(*at, "-n", 1000, "--reconnect", 100, *pair("client", "client"))


def test_tls_on_one_side_only_is_reported(server, serve, authority, fake_server):
    plain = serve("redis", tcp=True)
    check_refused("Does it accept TLS on this port?", "-p", plain.port, *authority.trusted)

    # Whatever comes is no handshake.
    def chatty(peer):
        peer.say(b"-ERR who are you?\r\n")
        peer.hear()

    where = fake_server(chatty, unix=False).where
    check_refused("does not use TLS on this port", *where, "--tls", "--insecure")

    # What a TLS server answers to what it does not understand.
    def alert(peer):
        peer.hear()
        peer.say(b"\x15\x03\x03\0\x02\x02\x46")

    check_refused("answered PING in TLS. Use --tls", *fake_server(alert, unix=False).where)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--cacert x", "need --tls"),
        ("--insecure", "need --tls"),
        ("--tls --cert x", "--cert and --key need each other"),
        ("--tls --key x", "--cert and --key need each other"),
        ("--tls --insecure --cacert x", "mutually exclusive"),
        ("--tls --pubsub 2", "do not support TLS"),
        ("--tls -s /tmp/x", "no host name to verify"),
    ],
)
def test_wrong_use_of_tls_is_refused_before_anything_is_done(words, says):
    check_refused(says, *words.split(), status=2)


def test_files_are_read_once_there_is_a_server_to_connect_to(server, authority):
    at = ["-p", server.tls_port, "--tls", "--cacert"]
    check_refused("No such file or directory", *at, "/nonexistent")
    check_refused("cannot use the CA", *at, authority.key("server"))


class Relay:
    """Forwards the bytes of a real server, up to `limit` bytes per connection, and then closes or sends no more."""

    def __init__(self, fake_server, port):
        self.limit, self.close_then = 0, True
        self._real = Endpoint(port=port)
        self.server = fake_server(self._forward, unix=False)

    def _forward(self, peer):
        left = self.limit
        with suppress(OSError), connect_to(self._real) as to:
            while left > 0 and not peer.over:
                ready, _, _ = select.select([to, peer.socket], [], [], 0.05)
                if to in ready:
                    data = to.recv(min(65536, left))
                    left -= len(data)
                    if not data or not peer.say(data):
                        return
                if peer.socket in ready:
                    heard = peer.hear()
                    if not heard:
                        return
                    to.sendall(heard)
            while not self.close_then and peer.hear():
                pass


@pytest.fixture
def relay(server, fake_server):
    return Relay(fake_server, server.tls_port)


def test_a_handshake_that_is_cut_anywhere_is_one_sentence(relay, authority):
    # Its first flight, then what arrives with the first answers: PONG, INFO's.
    limits = [*range(0, 200, 7), *range(203, 1500, 41)]
    assert len(limits) > 50
    for limit in limits:
        relay.limit = limit
        check_refused("", *relay.server.where, *authority.trusted, "-n", 1, "-c", 1)


@pytest.mark.parametrize("limit", [0, 3, 300])
def test_a_stalled_handshake_has_a_time_limit(relay, authority, limit):
    relay.limit, relay.close_then = limit, False
    at = [*relay.server.where, *authority.trusted, "-n", 1, "-c", 1]
    check_refused("did not finish the TLS handshake in time", *at)


def test_a_handshake_that_stalls_during_the_load_is_given_up_and_delays_no_other_connection(
    relay, authority, start_load
):
    relay.limit, relay.close_then = sys.maxsize, False
    run = start_load(
        *relay.server.where, *authority.trusted, "-c", 2, "-l", "--think", "5ms", "--reconnect", 1000, "--on-error",
        "reconnect",
    )  # fmt: skip
    run.under_way()
    relay.limit = 100
    # Each connection ends its thousand requests, and its successor's handshake stalls.
    before = len(relay.server.accepted)
    assert eventually(lambda: len(relay.server.accepted) >= before + 3, 60)
    run.interrupt(20)
    # The third was begun because one of the first two had been given up.
    assert run.figures["connects_failed"] >= 1
    assert run.log.with_status(ft.STATUS_OK) + run.log.with_status(ft.STATUS_MISS) >= 2000


def answers_since(run, since_ns):
    q = Recording(run.log_path).requests
    return int(((q.start_ns > since_ns) & (q.status <= ft.STATUS_MISS)).sum())


def start_load_and_replace_server(tls, authority, start_load, certificate):
    """A running load, whose server was killed; the next server, at the same port; and when the first had ended."""
    first = tls("server")
    run = start_load(
        *authority.at(first), "-c", 4, "--duration", 30, "--think", "1ms", "--on-error", "reconnect", "--backoff",
        "10ms",
    )  # fmt: skip
    run.under_way()
    kill(first)
    gone_ns = time.monotonic_ns()
    return run, tls(certificate, port=first.tls_port), gone_ns


def test_broken_connections_are_reopened_over_tls(tls, authority, start_load):
    run, _, gone_ns = start_load_and_replace_server(tls, authority, start_load, "server")
    assert eventually(lambda: answers_since(run, gone_ns) > 100, 20)
    assert run.interrupt(40).status == 0, run.err


def test_broken_connections_are_reopened_to_trusted_servers_only(tls, authority, start_load):
    run, server, gone_ns = start_load_and_replace_server(tls, authority, start_load, "other")

    # Tried, refused, and tried again.
    def refused():
        with open(server.log, errors="replace") as log:
            return "Error accepting a client connection" in log.read()

    assert eventually(refused, 20)
    assert run.interrupt(40).status == 3
    assert answers_since(run, gone_ns) == 0
    assert "the server has a certificate for db.example, 10.9.8.7, not for 127.0.0.1" in run.err


def test_the_observer_uses_tls_as_the_load_does(server, authority, start_load):
    run = start_load(*authority.at(server), "--duration", 2, "--rate", 100, "-c", 1, observer=True).done()
    assert len(run.log.samples) > 10
    assert "observer-lost" not in str(run.log.notes)


def test_a_password_is_sent_over_tls_only_to_a_verified_server(tls, authority):
    good, bad = tls("server"), tls("other")
    for one in (good, bad):
        one.ask("ACL", "SETUSER", "alice", "on", ">secret", "+@all", "~*")
    as_alice = ["-q", "--user", "alice", "-n", 200, "--reconnect", 10]
    password = {"FORKTAIL_PASSWORD": "secret"}
    check_accepted(*authority.at(good), *as_alice, env=password)
    assert load(*authority.at(bad), *as_alice, env=password).status == 3
    assert bad.ask("ACL", "LOG") == []
    assert "cmdstat_auth" not in bad.ask("INFO", "commandstats")[0]


def test_memcached_over_tls(serve, authority, start_load):
    if "--enable-ssl" not in run_program("memcached", "-h").out:
        pytest.skip("this memcached has no TLS")
    files = f"ssl_chain_cert={authority.certificate('server')},ssl_key={authority.key('server')}"
    memcached = serve("memcached", "-Z", "-o", files, tcp=True)
    at = ["-p", memcached.port]
    for protocol in ("memcache_text", "memcache_binary"):
        run = start_load(
            *at, *authority.trusted, "--protocol", protocol, "-n", 10000, "-P", 4, "-d", 5000, "-r", 100, "--verify"
        ).done()
        assert run.total["errors"] == 0, protocol
    check_refused("from a CA that is not among", *at, "--protocol", "memcache_text", "--tls")
