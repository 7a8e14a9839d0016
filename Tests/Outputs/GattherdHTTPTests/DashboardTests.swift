import GattherdHTTP
import Testing

/// The dashboard's files, as a browser gets them.
@Suite struct DashboardTests {
    private let service = HTTPService(FakeBackend())

    @Test func `all files of the page are served, and none refers to another host`() async throws {
        let page = await service.get("/")
        #expect(page.status == 200)
        #expect(page.header("Content-Type") == "text/html; charset=utf-8")
        var found: Set<String> = []
        var wanted = page.text.matches(of: /(?:href|src)="([^"#]+)"/).map { String($0.1) }
        while let name = wanted.popLast() {
            guard found.insert(name).inserted else { continue }
            let file = await service.get("/" + name)
            #expect(file.status == 200, "\(name)")
            wanted += file.text.matches(of: /from "\.\/([^"]+)"/).map { String($0.1) }
        }
        #expect(found.count == 34)
        for name in found { #expect(!(await service.get("/" + name).text.contains("https://"))) }
    }

    @Test(arguments: [("style.css", "text/css"), ("app.js", "text/javascript"), ("icon.svg", "image/svg+xml")])
    func `each file has its media type`(name: String, type: String) async {
        #expect(await service.get("/" + name).header("Content-Type")?.hasPrefix(type) == true)
    }

    @Test func `an unchanged file is not sent again`() async throws {
        let first = await service.get("/app.js")
        #expect(first.header("Cache-Control") == "no-cache")
        let tag = try #require(first.header("ETag"))
        let headers = ["host": "localhost", "if-none-match": tag]
        let second = await service.answer(HTTPRequest(.get, "/app.js", headers: headers))
        #expect(second.status == 304)
        #expect(second.text.isEmpty)
        #expect(second.header("ETag") == tag)
        #expect(await service.get("/style.css").header("ETag") != tag)
    }

    @Test func `the content policy allows only scripts and styles of the page`() async {
        let page = await service.get("/")
        let policy = page.header("Content-Security-Policy") ?? ""
        #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
        #expect(!policy.contains("unsafe"))
        #expect(!page.text.contains("style=") && !page.text.contains("<script>") && !page.text.contains("onclick="))
    }

    @Test func `other hosts get the page without the token`() async {
        let service = HTTPService(FakeBackend(), isLoopback: false)
        #expect(await service.get("/").status == 200)
        #expect(await service.get("/app.js").status == 200)
        #expect(await service.get("/api/v1/events").status == 401)
    }

    @Test func `the page cannot be written to`() async {
        #expect(await service.post("/").status == 405)
        #expect(await service.post("/app.js").status == 405)
    }
}
