import GattherdDashboard
import GattherdSync

/// The resource of a path.
enum Route: Hashable {
    /// A file of the dashboard.
    case file(String)
    case health
    case readiness
    case metrics
    case status
    case devices
    case device(String)
    case history
    case events
    case rejects
    case connect(device: String)
    case disconnect(device: String)
    case control(String, device: String)
    case administration(Administration)
    case unknown

    /// A resource of the configuration, or one that shows more of the gateway than its values.
    enum Administration: Hashable {
        case peripherals
        case newDevice
        case label(device: String)
        case explanation(device: String)
        case configurationFiles
        case configurationFile
        case configurationCheck
        case restart
        case log
        case doctor
    }

    init(_ path: String) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        switch parts.count {
        case 1: self = Self.roots[parts[0]] ?? (StaticFiles.dashboard.has(parts[0]) ? .file(parts[0]) : .unknown)
        case 3... where parts[0] == "api" && parts[1] == "v1": self = Self.api(parts.dropFirst(2))
        default: self = .unknown
        }
    }

    private static let roots: [String: Route] = ["healthz": .health, "readyz": .readiness, "metrics": .metrics]
    private static let lists: [String: Route] = [
        "status": .status, "devices": .devices, "history": .history, "events": .events, "rejects": .rejects,
    ]

    private static let administration: [String: Administration] = [
        "peripherals": .peripherals, "peripherals/add": .newDevice, "configuration": .configurationFiles,
        "configuration/file": .configurationFile, "configuration/check": .configurationCheck, "log": .log,
        "doctor": .doctor, "restart": .restart,
    ]

    /// Returns the route of a path below `/api/v1`.
    private static func api(_ parts: ArraySlice<String>) -> Route {
        let parts = Array(parts)
        if let resource = administration[parts.joined(separator: "/")] { return .administration(resource) }
        if parts.count == 1 { return lists[parts[0]] ?? .unknown }
        guard parts[0] == "devices", !parts[1].isEmpty else { return .unknown }
        switch (parts.count, parts.last) {
        case (2, _): return .device(parts[1])
        case (3, "connect"): return .connect(device: parts[1])
        case (3, "disconnect"): return .disconnect(device: parts[1])
        case (3, "label"): return .administration(.label(device: parts[1]))
        case (3, "why"): return .administration(.explanation(device: parts[1]))
        case (4, let control?) where parts[2] == "controls" && !control.isEmpty:
            return .control(control, device: parts[1])
        default: return .unknown
        }
    }

    var audience: AccessRules.Audience {
        switch self {
        case .health, .readiness, .metrics, .status, .devices, .device, .history, .events, .rejects, .unknown: .readers
        case .connect, .disconnect, .control, .administration: .writers
        case .file: .everybody
        }
    }

    var methods: [HTTPRequest.Method] {
        switch self {
        case .file, .health, .readiness, .metrics, .status, .devices, .device, .history, .events, .rejects:
            [.get, .head]
        case .connect, .disconnect, .control, .administration(.newDevice), .administration(.label),
            .administration(.configurationCheck), .administration(.restart):
            [.post]
        case .administration(.configurationFile): [.get, .head, .post]
        case .administration: [.get, .head]
        case .unknown: HTTPRequest.Method.allCases
        }
    }
}

// MARK: - Arguments

extension Route {
    /// Returns the error in the arguments of a request; `nil` if they are valid.
    func misuse(in request: HTTPRequest) -> String? {
        guard let known = arguments(of: request) else { return nil }
        if let name = request.query.keys.sorted().first(where: { !known.contains($0) }) {
            let all = known.isEmpty ? "this path takes none" : "use \(known.joined(separator: ", "))"
            return "unknown argument '\(name)'; \(all)"
        }
        return request.repeated.sorted().first.map { "argument '\($0)' is repeated; give one value" }
    }

    /// Returns the known arguments; `nil` where any are accepted, for monitors and browsers.
    private func arguments(of request: HTTPRequest) -> [String]? {
        switch self {
        case .file, .health, .readiness, .metrics, .unknown: nil
        case .history: ["device", "stream", "metric", "since", "until", "every", "limit"]
        case .events where !request.wantsJSON: []
        case .events, .rejects: ["device", "limit"]
        case .administration(.log): ["level", "device", "limit"]
        case .administration(.configurationFile): ["file"]
        case .status, .devices, .device, .connect, .disconnect, .control, .administration: []
        }
    }
}

extension HTTPRequest {
    /// True if the client accepts JSON, instead of an event stream.
    var wantsJSON: Bool { headers["accept"]?.contains("application/json") == true }
}

/// The files of the dashboard, each with an entity tag of its content.
struct StaticFiles {
    private struct Entry {
        let file: DashboardFile
        let tag: String
    }

    static let dashboard = StaticFiles(DashboardFile.all)

    private let entries: [String: Entry]

    init(_ files: [DashboardFile]) {
        let entries = files.map { ($0.path, Entry(file: $0, tag: Self.tag(of: $0.bytes))) }
        self.entries = Dictionary(entries) { first, _ in first }
    }

    func has(_ path: String) -> Bool { entries[path] != nil }

    /// Returns the file, or 304 if the client has this version.
    ///
    /// Clients revalidate each time.
    func response(to request: HTTPRequest, path: String) -> HTTPResponse {
        guard let entry = entries[path] else { return .error(404, "unknown path '\(request.path)'") }
        let isKnown = request.headers["if-none-match"] == entry.tag
        let response = HTTPResponse(isKnown ? 304 : 200, type: entry.file.type, isKnown ? [] : entry.file.bytes)
        return response.with("ETag", entry.tag).with("Cache-Control", "no-cache")
    }

    /// Returns an entity tag.
    private static func tag(of bytes: [UInt8]) -> String { "\"\(String(StableHash.fnv1a(bytes), radix: 16))\"" }
}
