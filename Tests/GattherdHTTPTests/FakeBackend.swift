import GattherdHTTP
import GattherdLog
import GattherdModel
import GattherdSync

/// A gateway that remembers what it was told.
final class FakeBackend: ConsoleBackend {
    static let token = "a-token-of-the-tests"

    private let state: Locked<DaemonStatus>
    private let orders = Locked<[String]>([])
    let counters = [DescribedCounter(Counter("events_dropped_total"), "Events that were not stored")]

    init() {
        let time = Timestamp(microseconds: 1_795_230_000_000_000)
        var status = DaemonStatus(version: "1.2", gateway: "g", started: time, history: .init(at: "/h.db", seq: 48))
        status.adapters = [.init(address: "00:1A:7D:DA:71:13", name: "hci0", isPowered: true, isDiscovering: false)]
        status.delivery = .init(state: "connected", at: "mqtt://b:1883", backlog: 3, published: 45, error: nil)
        var link = LinkStatus(device: "strap", state: .ready, since: time)
        link.rssi = -58
        let second = LinkStatus(device: "dial", state: .backingOff, since: time)
        status.devices = [
            .init(second, address: "C0:FF:EE:00:00:02", profiles: []),
            .init(link, address: "C0:FF:EE:00:00:01", profiles: ["heart-rate"]),
        ]
        state = Locked(status)
    }

    /// What it was told to do, in words.
    var told: [String] { orders.withLock { $0 } }

    func change(_ body: (inout DaemonStatus) -> Void) {
        state.withLock { body(&$0) }
    }

    func status() async -> DaemonStatus { state.withLock { $0 } }

    func connect(_ device: String) async throws(ControlError) { try note("connect \(device)", device) }

    func disconnect(_ device: String) async throws(ControlError) { try note("disconnect \(device)", device) }

    func set(_ request: ControlRequest) async -> Result<ControlValue, ControlError> {
        Result { () throws(ControlError) in
            try note("set \(request.device) \(request.control) \(request.value)", request.device)
            return request.value
        }
    }

    private func note(_ order: String, _ device: String) throws(ControlError) {
        guard state.withLock({ $0.devices.contains { $0.device == device } }) else { throw .noSuchDevice(device) }
        orders.withLock { $0.append(order) }
    }
}

extension HTTPConsole {
    init(_ backend: FakeBackend, isLoopback: Bool = true) {
        let access = AccessRules(isLoopback: isLoopback, names: [], token: AccessToken(FakeBackend.token))
        let server = HTTPServer(host: "127.0.0.1", port: 0, log: .silent)
        self.init(backend, access: access, counters: server.counters, log: .silent)
    }

    /// Asks as somebody on this host does.
    func get(_ path: String, query: [String: String] = [:]) async -> HTTPResponse {
        await answer(HTTPRequest(.get, path, query: query, headers: ["host": "localhost"]))
    }
}

extension HTTPResponse {
    var text: String {
        guard case .octets(let octets) = content else { return "" }
        return String(decoding: octets, as: UTF8.self)
    }

    func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}
