import GattherdConfig
import Testing

/// The section `mqtt.home_assistant.statistics`.
@Suite struct StatisticsSettingsTests {
    private func settings(_ text: String) throws -> StatisticsSettings? {
        let text = "mqtt: {url: 'mqtt://a', home_assistant: {\(text)}}"
        return try parse([ConfigSource(name: "/etc/gattherd/gattherd.yaml", text: text)]).mqtt?.homeAssistant.statistics
    }

    @Test func `without the section nothing is imported`() throws {
        #expect(try settings("discovery: true") == nil)
    }

    @Test func `paths are relative to the configuration, and files for TLS are checked only for https`() throws {
        let plain = try #require(try settings("statistics: {url: 'http://h:8123/', token_file: token}"))
        #expect(plain.url.value.description == "http://h:8123")
        #expect(plain.files.map(\.path.value) == ["/etc/gattherd/token"])
        #expect(plain.files.allSatisfy { !$0.needsRestart })
        let text = "statistics: {url: 'https://h', token_file: /t, tls: {ca: ca.pem, certificate: c.pem, key: k.pem}}"
        let secure = try #require(try settings(text))
        #expect(secure.files.map(\.path.value) == ["/t"] + ["ca", "c", "k"].map { "/etc/gattherd/\($0).pem" })
    }

    @Test(arguments: [
        ("http://[::1]:8123", "[::1]:8123", "", false), ("https://home.lan", "home.lan", "", false),
        ("http://127.0.0.1", "127.0.0.1", "", false), ("http://home.lan:80/A/b//", "home.lan:80", "/A/b", true),
        ("http://127.evil.example", "127.evil.example", "", true),
    ])
    func `a URL has an authority and a path`(text: String, authority: String, path: String, isExposed: Bool) throws {
        let url = try #require(ServerURL(text))
        #expect((url.authority, url.path, url.isExposed) == (authority, path, isExposed))
    }

    @Test(arguments: [
        "", "h:8123", "ftp://h", "http://", "http://h:0", "http://h:x", "http://u@h", "http://h/?q", "http://h/#f",
        "http://h/a b", "http://h\r\nX: y", "http://h/\r\nX: y",
    ])
    func `texts that are not URLs of a server are refused`(text: String) {
        #expect(ServerURL(text) == nil)
    }
}
