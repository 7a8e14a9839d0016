import GattherdHTTP
import GattherdModel
import Testing

@Suite struct HealthTests {
    private let backend = FakeBackend()
    private var service: HTTPService { HTTPService(backend) }

    @Test func `a running gateway is alive`() async {
        let answer = await service.get("/healthz")
        #expect(answer.status == 200)
        #expect(answer.text == "ok\n")
    }

    @Test func `a gateway is ready if adapter, history and outputs are good`() async {
        let answer = await service.get("/readyz")
        #expect(answer.status == 200)
        #expect(answer.text == #"{"ready":true,"checks":{"bluetooth":"ok","history":"ok","mqtt":"ok"}}"#)
    }

    @Test func `a gateway without outputs is ready if Bluetooth and history are`() async {
        backend.change { $0.outputs = [] }
        #expect(await service.get("/readyz").text == #"{"ready":true,"checks":{"bluetooth":"ok","history":"ok"}}"#)
    }

    private enum Fault: String, CaseIterable {
        case noAdapter = #""bluetooth":"no adapter, or no bluetoothd""#
        case adapterOff = #""bluetooth":"no adapter is on""#
        case disk = #""history":"the disk is full""#
        case failingOutput = #""mqtt":"refused: not authorised""#
        case connectingOutput = #""mqtt":"connecting""#
        case lateOutput = #""mqtt":"190 s behind, with a backlog of 7""#

        func happen(to status: inout DaemonStatus) {
            switch self {
            case .noAdapter: status.adapters = []
            case .adapterOff: status.adapters[0].powered = false
            case .disk: status.history.error = "the disk is full"
            case .failingOutput:
                status.outputs[0].state = "waiting"
                status.outputs[0].error = "refused: not authorised"
            case .connectingOutput: status.outputs[0].state = "connecting"
            case .lateOutput: (status.outputs[0].backlog, status.outputs[0].lag) = (7, 190.4)
            }
        }
    }

    @Test(arguments: Fault.allCases) private func `a fault makes the gateway not ready and is named`(fault: Fault) async
    {
        backend.change { fault.happen(to: &$0) }
        let answer = await service.get("/readyz")
        #expect(answer.status == 503)
        #expect(answer.text.hasPrefix(#"{"ready":false,"#))
        #expect(answer.text.contains(fault.rawValue))
        #expect(await service.get("/healthz").status == 200)
    }

    @Test func `each of several outputs is checked by its name`() async {
        backend.change {
            var other = DaemonStatus.Output("influx", state: .waiting, target: "http://i:8086")
            other.error = "connection refused"
            $0.outputs.append(other)
        }
        let checks = #"{"bluetooth":"ok","history":"ok","mqtt":"ok","influx":"connection refused"}"#
        #expect(await service.get("/readyz").text == #"{"ready":false,"checks":"# + checks + "}")
        #expect(await service.get("/healthz").status == 200)
    }

    @Test func `an output with a problem that still delivers in time is good`() async {
        backend.change { $0.outputs[0].error = "refuses 'gattherd/g/lamp/state'" }
        #expect(await service.get("/readyz").status == 200)
    }

    @Test func `every response has the headers that restrict browsers`() async {
        for path in ["/healthz", "/metrics", "/nothing"] {
            let answer = await service.get(path)
            #expect(
                answer.header("Content-Security-Policy")?.hasPrefix("default-src 'none'; script-src 'self'") == true
            )
            #expect(answer.header("X-Content-Type-Options") == "nosniff")
            #expect(answer.header("Cache-Control") == "no-store")
        }
    }

    @Test func `unknown paths return 404 and writes to others 405`() async {
        let headers = ["host": "localhost"]
        #expect(await service.get("/nothing").status == 404)
        let answer = await service.answer(HTTPRequest(.post, "/healthz", headers: headers))
        #expect(answer.status == 405)
        #expect(answer.header("Allow") == "GET, HEAD")
    }

    @Test func `other hosts get no health data without the token`() async {
        let service = HTTPService(backend, isLoopback: false)
        for path in ["/healthz", "/readyz", "/metrics", "/api/v1/status", "/nothing"] {
            let answer = await service.get(path)
            #expect(answer.status == 401)
            #expect(answer.header("WWW-Authenticate") == #"Bearer realm="gattherd""#)
        }
        let headers = ["host": "192.0.2.1", "authorization": "Bearer " + FakeBackend.token]
        #expect(await service.answer(HTTPRequest(.get, "/metrics", headers: headers)).status == 200)
    }
}
