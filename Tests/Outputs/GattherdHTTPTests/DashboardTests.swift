import GattherdHTTP
import Testing

/// The dashboard's files, as a browser gets them.
@Suite struct DashboardTests {
    private let console = HTTPConsole(FakeBackend())

    @Test func `The page leads to everything that it is made of, and to no other host`() async throws {
        let page = await console.get("/")
        #expect(page.status == 200)
        #expect(page.header("Content-Type") == "text/html; charset=utf-8")
        var found: Set<String> = []
        var wanted = page.text.matches(of: /(?:href|src)="([^"#]+)"/).map { String($0.1) }
        while let name = wanted.popLast() {
            guard found.insert(name).inserted else { continue }
            let file = await console.get("/" + name)
            #expect(file.status == 200, "\(name)")
            wanted += file.text.matches(of: /from "\.\/([^"]+)"/).map { String($0.1) }
        }
        #expect(found.count == 15)
        for name in found { #expect(!(await console.get("/" + name).text.contains("https://"))) }
    }

    @Test(arguments: [("style.css", "text/css"), ("app.js", "text/javascript"), ("icon.svg", "image/svg+xml")])
    func `A browser is told what each file is`(name: String, type: String) async {
        #expect(await console.get("/" + name).header("Content-Type")?.hasPrefix(type) == true)
    }

    @Test func `A file that has not changed is not sent again`() async throws {
        let first = await console.get("/app.js")
        #expect(first.header("Cache-Control") == "no-cache")
        let tag = try #require(first.header("ETag"))
        let headers = ["host": "localhost", "if-none-match": tag]
        let second = await console.answer(HTTPRequest(.get, "/app.js", headers: headers))
        #expect(second.status == 304)
        #expect(second.text.isEmpty)
        #expect(second.header("ETag") == tag)
        #expect(await console.get("/style.css").header("ETag") != tag)
    }

    @Test func `The page runs no script and no style but its own files`() async {
        let page = await console.get("/")
        let policy = page.header("Content-Security-Policy") ?? ""
        #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
        #expect(!policy.contains("unsafe"))
        #expect(!page.text.contains("style=") && !page.text.contains("<script>") && !page.text.contains("onclick="))
    }

    @Test func `From elsewhere the page is there without the token, for it asks for it`() async {
        let console = HTTPConsole(FakeBackend(), isLoopback: false)
        #expect(await console.get("/").status == 200)
        #expect(await console.get("/app.js").status == 200)
        #expect(await console.get("/api/v1/events").status == 401)
    }

    @Test func `The page is read, not written to`() async {
        #expect(await console.post("/").status == 405)
        #expect(await console.post("/app.js").status == 405)
    }
}
