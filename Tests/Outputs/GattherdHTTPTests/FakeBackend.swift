import GattherdHTTP
import GattherdLog
import GattherdModel
import GattherdSync

/// A gateway that records commands and queries.
final class FakeBackend: HTTPBackend {
    static let token = "a-token-of-the-tests"

    private let state: Locked<DaemonStatus>
    private let received = Locked<[String]>([])
    private let asked = Locked<[RecordQuery]>([])
    private let fault = Locked<BackendError?>(nil)
    private let refusal = Locked<ControlError?>(nil)
    let fakeAdministration = FakeAdministration()
    var administration: any AdministrationBackend { fakeAdministration }
    let now = Timestamp(microseconds: 1_795_230_060_000_000)
    let showsSamples: Bool
    let counters = [Counter("events_dropped_total", "Events that were not stored")]
    let outputCounters: [(output: String, counters: [Counter])] = ["hall", "yard"].map { output in
        (output, [Counter("births_total", "Births")])
    }

    init(showsSamples: Bool = false) {
        self.showsSamples = showsSamples
        let time = Timestamp(microseconds: 1_795_230_000_000_000)
        var status = DaemonStatus(version: "1.2", gateway: "g", started: time, history: .init(at: "/h.db", seq: 48))
        status.adapters = [.init(address: "00:1A:7D:DA:71:13", name: "hci0", isPowered: true, isDiscovering: false)]
        var output = DaemonStatus.Output("mqtt", state: .connected, target: "mqtt://b:1883")
        (output.backlog, output.lag, output.delivered) = (3, 0.25, 45)
        status.outputs = [output]
        var link = LinkStatus(device: "strap", state: .ready, since: time)
        link.rssi = -58
        let second = LinkStatus(device: "dial", state: .backingOff, since: time)
        status.devices = [
            .init(second, address: "C0:FF:EE:00:00:02", profiles: []),
            .init(link, address: "C0:FF:EE:00:00:01", profiles: ["heart-rate"]),
        ]
        state = Locked(status)
    }

    /// The commands, as text.
    var commands: [String] { received.withLock { $0 } }

    /// The queries for stored records.
    var queries: [RecordQuery] { asked.withLock { $0 } }

    /// Makes all queries fail.
    func fail(with fault: BackendError) {
        self.fault.withLock { $0 = fault }
    }

    func update(_ change: (inout DaemonStatus) -> Void) { state.withLock { change(&$0) } }

    /// Makes all commands fail.
    func refuse(with error: ControlError) {
        refusal.withLock { $0 = error }
    }

    func history(_ query: RecordQuery) async -> Result<[UInt8], BackendError> { answer(query, "history") }

    func events(_ query: RecordQuery) async -> Result<[UInt8], BackendError> { answer(query, "events") }

    func rejects(_ query: RecordQuery) async -> Result<[UInt8], BackendError> { answer(query, "rejects") }

    private func answer(_ query: RecordQuery, _ word: String) -> Result<[UInt8], BackendError> {
        asked.withLock { $0.append(query) }
        if let fault = fault.withLock({ $0 }) { return .failure(fault) }
        return .success(Array("\"\(word)\"".utf8))
    }

    func change(_ body: (inout DaemonStatus) -> Void) {
        state.withLock { body(&$0) }
    }

    func status() async -> DaemonStatus { state.withLock { $0 } }

    func connect(_ device: String) async throws(ControlError) { try record("connect \(device)", device) }

    func disconnect(_ device: String) async throws(ControlError) { try record("disconnect \(device)", device) }

    func set(_ request: ControlRequest) async -> Result<ControlValue, ControlError> {
        Result { () throws(ControlError) in
            let lease = request.epoch.map { " under \($0) as \(request.transaction ?? "none")" } ?? ""
            try record("set \(request.device) \(request.control) \(request.value)\(lease)", request.device)
            return request.value
        }
    }

    func words(for error: ControlError) -> String { "In words: \(error)" }

    private func record(_ command: String, _ device: String) throws(ControlError) {
        if let error = refusal.withLock({ $0 }) { throw error }
        guard state.withLock({ $0.devices.contains { $0.device == device } }) else { throw .noSuchDevice(device) }
        received.withLock { $0.append(command) }
    }
}

extension HTTPService {
    init(
        _ backend: FakeBackend,
        _ live: LiveStatus = LiveStatus(),
        isLoopback: Bool = true,
        server: HTTPServer = HTTPServer(host: "127.0.0.1", port: 0, log: .silent)
    ) {
        let access = AccessRules(isLoopback: isLoopback, names: [], token: AccessToken(FakeBackend.token))
        self.init(backend, live: live, access: access, server: server, log: .silent)
    }

    /// Sends a POST request with the token.
    func post(_ path: String, _ body: String = "", type: String = "application/json") async -> HTTPResponse {
        let headers = [
            "host": "localhost", "authorization": "Bearer " + FakeBackend.token, "content-type": type,
        ]
        return await answer(HTTPRequest(.post, path, headers: headers, body: Array(body.utf8)))
    }

    /// Sends a GET request from this host.
    func get(_ path: String, query: [String: String] = [:]) async -> HTTPResponse {
        await answer(HTTPRequest(.get, path, query: query, headers: ["host": "localhost"]))
    }
}

extension HTTPResponse {
    var text: String {
        guard case .bytes(let bytes) = content else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }

    func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}
