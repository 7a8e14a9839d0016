import GattherdHTTP
import GattherdModel
import Testing

@Suite struct HealthTests {
    private let backend = FakeBackend()
    private var console: HTTPConsole { HTTPConsole(backend) }

    @Test func `Who is alive says so`() async {
        let answer = await console.get("/healthz")
        #expect(answer.status == 200)
        #expect(answer.text == "ok\n")
    }

    @Test func `A gateway is ready when adapter, disk and broker are good`() async {
        let answer = await console.get("/readyz")
        #expect(answer.status == 200)
        #expect(answer.text == #"{"ready":true,"checks":{"bluetooth":"ok","history":"ok","broker":"ok"}}"#)
    }

    @Test func `Without MQTT there is no broker to be ready`() async {
        backend.change { $0.delivery = nil }
        #expect(await console.get("/readyz").text == #"{"ready":true,"checks":{"bluetooth":"ok","history":"ok"}}"#)
    }

    private enum Fault: String, CaseIterable {
        case noAdapter = #""bluetooth":"no adapter, or no bluetoothd""#
        case adapterOff = #""bluetooth":"no adapter is on""#
        case disk = #""history":"the disk is full""#
        case broker = #""broker":"refused: not authorised""#

        func happen(to status: inout DaemonStatus) {
            switch self {
            case .noAdapter: status.adapters = []
            case .adapterOff: status.adapters[0].powered = false
            case .disk: status.history.error = "the disk is full"
            case .broker:
                status.delivery?.state = "waiting to reconnect"
                status.delivery?.error = "refused: not authorised"
            }
        }
    }

    @Test(arguments: Fault.allCases) private func `What is wrong makes it not ready, and is said`(fault: Fault) async {
        backend.change { fault.happen(to: &$0) }
        let answer = await console.get("/readyz")
        #expect(answer.status == 503)
        #expect(answer.text.hasPrefix(#"{"ready":false,"#))
        #expect(answer.text.contains(fault.rawValue))
        #expect(await console.get("/healthz").status == 200)
    }

    @Test func `Every answer forbids browsers what it is not meant for`() async {
        for path in ["/healthz", "/metrics", "/nothing"] {
            let answer = await console.get(path)
            #expect(
                answer.header("Content-Security-Policy")?.hasPrefix("default-src 'none'; script-src 'self'") == true
            )
            #expect(answer.header("X-Content-Type-Options") == "nosniff")
            #expect(answer.header("Cache-Control") == "no-store")
        }
    }

    @Test func `What is not there is not found, and what is there is not written to`() async {
        let headers = ["host": "localhost"]
        #expect(await console.get("/nothing").status == 404)
        let answer = await console.answer(HTTPRequest(.post, "/healthz", headers: headers))
        #expect(answer.status == 405)
        #expect(answer.header("Allow") == "GET, HEAD")
    }

    @Test func `From elsewhere nothing is told without the token`() async {
        let console = HTTPConsole(backend, isLoopback: false)
        for path in ["/healthz", "/readyz", "/metrics", "/api/v1/status", "/nothing"] {
            let answer = await console.get(path)
            #expect(answer.status == 401)
            #expect(answer.header("WWW-Authenticate") == #"Bearer realm="gattherd""#)
        }
        let headers = ["host": "192.0.2.1", "authorization": "Bearer " + FakeBackend.token]
        #expect(await console.answer(HTTPRequest(.get, "/metrics", headers: headers)).status == 200)
    }
}
