/// What a path stands for.
enum Route: Hashable {
    /// A part of the dashboard.
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
    case unknown

    init(_ path: String) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        switch parts.count {
        case 1: self = Self.roots[parts[0]] ?? (StaticFiles.dashboard.has(parts[0]) ? .file(parts[0]) : .unknown)
        case 3... where parts[0] == "api" && parts[1] == "v1": self = Self.interface(parts.dropFirst(2))
        default: self = .unknown
        }
    }

    private static let roots: [String: Route] = ["healthz": .health, "readyz": .readiness, "metrics": .metrics]
    private static let lists: [String: Route] = [
        "status": .status, "devices": .devices, "history": .history, "events": .events, "rejects": .rejects,
    ]

    /// What stands behind `/api/v1`.
    private static func interface(_ parts: ArraySlice<String>) -> Route {
        let parts = Array(parts)
        if parts.count == 1 { return lists[parts[0]] ?? .unknown }
        guard parts[0] == "devices", !parts[1].isEmpty else { return .unknown }
        switch (parts.count, parts.last) {
        case (2, _): return .device(parts[1])
        case (3, "connect"): return .connect(device: parts[1])
        case (3, "disconnect"): return .disconnect(device: parts[1])
        case (4, let control?) where parts[2] == "controls" && !control.isEmpty:
            return .control(control, device: parts[1])
        default: return .unknown
        }
    }

    var audience: AccessRules.Audience {
        switch self {
        case .health, .readiness, .metrics, .status, .devices, .device, .history, .events, .rejects, .unknown: .readers
        case .connect, .disconnect, .control: .writers
        case .file: .everybody
        }
    }

    var methods: [HTTPRequest.Method] {
        switch self {
        case .file, .health, .readiness, .metrics, .status, .devices, .device, .history, .events, .rejects:
            [.get, .head]
        case .connect, .disconnect, .control: [.post]
        case .unknown: HTTPRequest.Method.allCases
        }
    }
}

// MARK: - Arguments

extension Route {
    /// What is wrong with the arguments of a request, and which there are; `nil` when nothing is.
    func misuse(in request: HTTPRequest) -> String? {
        guard let known = arguments(of: request) else { return nil }
        if let name = request.query.keys.sorted().first(where: { !known.contains($0) }) {
            let all = known.isEmpty ? "there is none here" : "there are \(known.joined(separator: ", "))"
            return "unknown argument '\(name)'; \(all)"
        }
        return request.repeated.sorted().first.map { "'\($0)' is there more than once; one value is possible" }
    }

    /// Those that mean something; `nil` where any are let through, which monitors and browsers may have reasons for.
    private func arguments(of request: HTTPRequest) -> [String]? {
        switch self {
        case .file, .health, .readiness, .metrics, .unknown: nil
        case .history: ["device", "metric", "since", "until", "every", "limit"]
        case .events where !request.wantsJSON: []
        case .events, .rejects: ["device", "limit"]
        case .status, .devices, .device, .connect, .disconnect, .control: []
        }
    }
}

extension HTTPRequest {
    /// What else may be a stream of events is wanted as JSON.
    var wantsJSON: Bool { headers["accept"]?.contains("application/json") == true }
}
