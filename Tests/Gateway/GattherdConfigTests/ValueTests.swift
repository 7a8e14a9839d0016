import GattherdModel
import Testing

@testable import GattherdConfig

@Suite struct ValueTests {
    @Test(arguments: [
        ("500ms", 500_000), ("1.5s", 1_500_000), ("0.25m", 15_000_000), ("24h", 86_400_000_000),
        ("2w", 1_209_600_000_000),
        ("1y", 31_536_000_000_000), ("7us", 7), ("0s", 0), ("0.000001s", 1),
    ])
    func `a duration is a number and a unit`(text: String, microseconds: Int64) {
        #expect(QuantityGrammar.duration(text) == .microseconds(microseconds))
    }

    @Test(arguments: [
        "", "5", "s", "5 s", "-5s", "+5s", "5S", "1e3s", ".5s", "5.s", "1.2.3s", "1.1234567s", "9999999999y", "٣s",
    ])
    func `an incomplete duration is rejected`(text: String) {
        #expect(QuantityGrammar.duration(text) == nil)
    }

    @Test(arguments: [("500MB", 500_000_000), ("2GiB", 2_147_483_648), ("1.5KiB", 1536), ("17B", 17)])
    func `a size is a number and a unit`(text: String, octets: UInt64) {
        #expect(QuantityGrammar.size(text) == octets)
    }

    @Test(arguments: ["1y", "30d", "36h", "5m", "90s", "250ms", "0s"])
    func `a printed duration can be read again`(text: String) throws {
        #expect(QuantityGrammar.text(try #require(QuantityGrammar.duration(text))) == text)
    }

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
        ("127.0.0.1", true), ("127.9.9.9", true), ("localhost", true), ("::1", true), ("0.0.0.0", false),
        ("127.evil.org", false), ("127.0.0.1.evil.org", false), ("127.0.0", false),
    ])
    func `only loopback addresses are loopback`(host: String, isLoopback: Bool) {
        #expect(ListenAddress(host: host, port: 1).isLoopback == isLoopback)
    }

    @Test(arguments: [
        ("conect_timeout", "connect_timeout"), ("naem", "name"), ("x", nil), ("retian", "retain"), ("NAME", "name"),
        ("", nil),
    ])
    func `the nearest word is suggested`(typed: String, meant: String?) {
        #expect(Spelling.nearest(to: typed, among: ["connect_timeout", "name", "retain"]) == meant)
    }

    @Test(arguments: [("Lab-1.example.org", "lab-1"), ("", "gateway"), ("a_b c", "a_b-c"), ("Ä", "--")])
    func `a host name becomes a slug`(host: String, slug: String) {
        #expect(Slug.from(hostName: host) == slug)
        #expect(Slug.isValid(slug))
    }
}
