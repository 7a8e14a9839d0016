import GattherdConfig
import Testing

@testable import GattherdInflux

struct InfluxURLTests {
    private func writeURL(_ url: String, _ database: InfluxOptions.Database) -> String? {
        ServerURL(url).map { InfluxOptions(gateway: "lab", url: $0, database: database).writeURL }
    }

    @Test func `the API of each version is addressed`() {
        let first = InfluxOptions.Database.database("home", retentionPolicy: nil)
        let kept = InfluxOptions.Database.database("a&b=c d/ü", retentionPolicy: "two weeks")
        let second = InfluxOptions.Database.bucket("home", organisation: "me")
        let third = InfluxOptions.Database.bucket("home", organisation: nil)
        for (url, database, expected) in [
            ("http://localhost:8086", first, "http://localhost:8086/write?db=home&precision=ns"),
            (
                "http://localhost:8086/", kept,
                "http://localhost:8086/write?db=a%26b%3Dc%20d%2F%C3%BC&rp=two%20weeks&precision=ns"
            ),
            ("https://db.lan", second, "https://db.lan/api/v2/write?org=me&bucket=home&precision=ns"),
            ("https://[fe80::1]:8181", third, "https://[fe80::1]:8181/api/v2/write?bucket=home&precision=ns"),
            ("http://vm:8480/insert/0/influx", first, "http://vm:8480/insert/0/influx/write?db=home&precision=ns"),
            ("http://vm/write", first, "http://vm/write?db=home&precision=ns"),
            ("http://vm/api/v2/write/", third, "http://vm/api/v2/write?bucket=home&precision=ns"),
        ] {
            #expect(writeURL(url, database) == expected)
        }
    }

    @Test func `a URL is refused unless it has the scheme http or https, a host, and no user, query or fragment`() {
        for text in [
            "", "localhost:8086", "ftp://localhost", "http://", "http://:8086", "http://a:0", "http://a:65536",
            "http://a:+1", "http://a:", "http://user:pass@host", "http://user@host", "http://a/?q", "http://a/#f",
            "http://a b", "http://a/\r\nX: y", "http://[::1", "http://[::1]x", "http://a:80:80", "HTTP://a",
        ] {
            #expect(ServerURL(text) == nil, "\(text)")
        }
    }

    @Test func `requests are exposed only by plain HTTP to another host`() {
        for (url, isExposed) in [
            ("http://db.lan:8086", true), ("https://db.lan:8086", false), ("http://localhost:8086", false),
            ("http://127.0.0.1:8086", false), ("http://[::1]:8086", false), ("http://127.evil.com", true),
        ] {
            #expect(ServerURL(url)?.isExposed == isExposed, "\(url)")
        }
    }

    @Test func `credentials never appear in descriptions`() {
        let credentials = [InfluxCredentials.token("s3cret"), .password(user: "u", "s3cret")]
        var text = "\(credentials) \(String(reflecting: credentials))"
        dump(credentials, to: &text)
        #expect(!text.contains("s3cret"))
    }
}
