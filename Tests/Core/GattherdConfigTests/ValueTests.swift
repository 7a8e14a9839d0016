import GattherdModel
import Testing

@testable import GattherdConfig

@Suite struct ValueTests {
    @Test(arguments: [
        ("${A}", "one"), ("x${A}y${B}", "xoney"), ("${B:-two}", "two"), ("${C:-two}", "two"), ("${A:-two}", "one"),
        ("${C:-}", ""), ("$A $$ $", "$A $$ $"), ("$${A}", "${A}"), ("${D}", "${A}"), ("${C:-a:-b}", "a:-b"),
    ])
    func `variables are replaced once, with defaults`(text: String, expected: String) throws {
        let substitution = Substitution(variables: ["A": "one", "B": "", "D": "${A}"])
        #expect(try substitution.apply(to: text) == expected)
    }

    @Test(arguments: [
        ("mqtt://a", "mqtt://a:1883"), ("mqtts://a.b-c.d:1", "mqtts://a.b-c.d:1"),
        ("mqtt://[fe80::1%eth0]:99/", "mqtt://[fe80::1%eth0]:99"),
        ("mqtts://[::1]", "mqtts://[::1]:8883"), ("mqtt://", nil), ("http://a", nil), ("mqtt://a:0", nil),
        ("mqtt://a:65536", nil), ("mqtt://a:+1", nil), ("mqtt://a/b", nil), ("mqtt://[::1", nil), ("mqtt://[a]:1", nil),
        ("MQTT://a", nil), ("mqtt://a b", nil),
    ])
    func `a broker's URL has a host and an optional port`(text: String, url: String?) {
        #expect(ConfigGrammar<BrokerAddress>.broker.read(text)?.description == url)
    }

    @Test(arguments: [
        ("unix:path=/run/bus", true), ("unix:abstract=a,guid=1;tcp:host=a,port=1", true),
        ("unix:path=/run/bus;", false),
        ("unixexec:path=/bin/sh", false), ("unix:path=/none;unixexec:path=/bin/sh", false), ("autolaunch:", false),
        ("nonce-tcp:host=a,port=1,noncefile=/etc/shadow", false), ("unix", false), (";unix:path=/run/bus", false),
    ])
    func `a bus is a list of sockets, never a program`(text: String, isValid: Bool) {
        #expect(ConfigGrammar<BusChoice>.bus.read(text) == (isValid ? .address(text) : nil))
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.9.9.9", true), ("localhost", true), ("::1", true), ("0.0.0.0", false),
        ("127.evil.org", false), ("127.0.0.1.evil.org", false), ("127.0.0", false),
    ])
    func `isLoopback is true for loopback addresses only`(host: String, isLoopback: Bool) {
        #expect(ListenAddress(host: host, port: 1).isLoopback == isLoopback)
    }

    @Test(arguments: [("Lab-1.example.org", "lab-1"), ("", "gateway"), ("a_b c", "a_b-c"), ("Ä", "--")])
    func `a host name becomes a slug`(host: String, slug: String) {
        #expect(Slug.from(hostName: host) == slug)
        #expect(Slug.isValid(slug))
    }
}
