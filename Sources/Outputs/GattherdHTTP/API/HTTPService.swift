package import GattherdLog
import GattherdModel

/// The gateway over HTTP: dashboard, JSON API, health, metrics.
package struct HTTPService: Sendable {
    let backend: any HTTPBackend
    let live: LiveStatus
    let hub: EventHub
    let access: AccessRules
    private let server: HTTPServer
    private let log: Log

    /// - Parameters:
    ///   - backend: The gateway.
    ///   - live: The newest values, links and events.
    ///   - access: The access rules.
    ///   - server: The server, started by ``run()``.
    ///   - log: The log.
    package init(_ backend: any HTTPBackend, live: LiveStatus, access: AccessRules, server: HTTPServer, log: Log) {
        self.backend = backend
        self.live = live
        self.access = access
        self.server = server
        self.log = log
        hub = EventHub(live, backend, limits: server.limits, dropped: server.counters.eventsDropped)
    }

    /// Serves until cancelled.
    package func run() async {
        async let _ = hub.run()
        await server.run(bodyLimit: bodyLimit) { await answer($0) }
    }

    /// Returns the maximum number of bytes of a request's body; only clients with the token may send a whole file.
    private func bodyLimit(_ request: HTTPRequest) -> Int {
        let route = Route(request.path)
        let isLarge = [.administration(.configurationFile), .administration(.configurationCheck)].contains(route)
        return isLarge && access.refusal(of: request, for: route.audience) == nil
            ? server.limits.fileBody : server.limits.body
    }

    /// Responds to a request, if the access rules allow it.
    package func answer(_ request: HTTPRequest) async -> HTTPResponse {
        await checkedAnswer(request).hardened
    }

    private func checkedAnswer(_ request: HTTPRequest) async -> HTTPResponse {
        let route = Route(request.path)
        if let refusal = access.refusal(of: request, for: route.audience) {
            server.counters.refused.add()
            log(.debug, "http request refused", [LogField("path", request.path), LogField("refusal", "\(refusal)")])
            return refusal.response
        }
        guard route.methods.contains(request.method) else {
            return .methodNotAllowed(route.methods.map(\.rawValue).joined(separator: ", "))
        }
        if let misuse = route.misuse(in: request) { return .error(400, misuse) }
        return await answer(request, route)
    }

    private func answer(_ request: HTTPRequest, _ route: Route) async -> HTTPResponse {
        switch route {
        case .file(let path): StaticFiles.dashboard.response(to: request, path: path)
        case .health: .text(200, "ok")
        case .readiness: await readiness()
        case .metrics: await metrics()
        case .status: await status()
        case .devices: await devices()
        case .device(let name): await device(name)
        case .history: await history(request)
        case .events: await events(request)
        case .rejects: await rejects(request)
        case .connect(let device): await connect(device)
        case .disconnect(let device): await disconnect(device)
        case .control(let control, let device): await set(control, of: device, request)
        case .administration(let route): await answer(request, route)
        case .unknown: .error(404, "unknown path '\(request.path)'")
        }
    }

    private func readiness() async -> HTTPResponse {
        let readiness = GatewayReadiness(await backend.status())
        return .json(readiness.json, status: readiness.isReady ? 200 : 503)
    }

    private func metrics() async -> HTTPResponse {
        let status = await backend.status()
        let families =
            status.metrics + live.linkMetrics + (backend.showsSamples ? live.sampleMetrics : [])
            + (backend.counters + server.counters.all).map { MetricFamily($0) }
            + MetricFamily.families(backend.outputCounters)
            + [server.counters.responses] + ProcessMetrics.families(started: Timestamp(rfc3339: status.started.utf8))
        return HTTPResponse(200, type: PrometheusText.contentType, PrometheusText(families).bytes)
    }
}

/// The result of the readiness check: adapter, history and outputs.
struct GatewayReadiness {
    /// The parts and their problems; `nil` for a part that is good.
    private var checks: [(name: String, problem: String?)]

    init(_ status: DaemonStatus) {
        let isOn = status.adapters.contains { $0.powered }
        checks = [
            ("bluetooth", isOn ? nil : status.adapters.isEmpty ? "no adapter, or no bluetoothd" : "no adapter is on"),
            ("history", status.history.error),
        ]
        checks += status.outputs.map { ($0.name, $0.problem) }
    }

    var isReady: Bool { checks.allSatisfy { $0.problem == nil } }

    /// The JSON `{"ready":…,"checks":{…}}`, with `ok` for each part that is good.
    var json: [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("ready")
            writer.boolean(isReady)
            writer.key("checks")
            writer.beginObject()
            for check in checks {
                writer.key(check.name)
                writer.string(check.problem ?? "ok")
            }
            writer.endObject()
            writer.endObject()
        }
    }
}
