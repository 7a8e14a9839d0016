public import GattherdLog
import GattherdModel

/// The gateway's console by HTTP: health, metrics.
public struct HTTPConsole: Sendable {
    let backend: any ConsoleBackend
    let access: AccessRules
    let counters: HTTPCounters
    let log: Log

    /// - Parameters:
    ///   - backend: What is shown and done.
    ///   - access: Who may do what.
    ///   - counters: The server's, which are among the metrics.
    ///   - log: For people.
    public init(_ backend: any ConsoleBackend, access: AccessRules, counters: HTTPCounters, log: Log) {
        self.backend = backend
        self.access = access
        self.counters = counters
        self.log = log
    }

    /// Answers a request, if it may be carried out.
    public func answer(_ request: HTTPRequest) async -> HTTPResponse {
        let response = await checkedAnswer(request)
        return response.hardened
    }

    private func checkedAnswer(_ request: HTTPRequest) async -> HTTPResponse {
        let route = Route(request)
        if let refusal = access.refusal(of: request, for: route.audience) {
            counters.refused.add()
            log(.debug, "http request refused", [LogField("path", request.path), LogField("refusal", "\(refusal)")])
            return refusal.response
        }
        guard route.methods.contains(request.method) else {
            return .methodNotAllowed(route.methods.map(\.rawValue).joined(separator: ", "))
        }
        switch route {
        case .health: return .text(200, "ok")
        case .readiness: return await readiness()
        case .metrics: return await metrics()
        case .unknown: return .error(404, "there is nothing at '\(request.path)'")
        }
    }

    private func readiness() async -> HTTPResponse {
        let readiness = Readiness(await backend.status())
        return .json(readiness.isReady ? 200 : 503, readiness.json)
    }

    private func metrics() async -> HTTPResponse {
        let status = await backend.status()
        let families =
            status.metrics + (backend.counters + counters.described).map { MetricFamily($0) }
            + [counters.responses] + ProcessMetrics.families(started: Timestamp(rfc3339: status.started.utf8))
        return HTTPResponse(200, type: PrometheusText.contentType, PrometheusText(families).octets)
    }
}

extension HTTPResponse {
    /// With what keeps browsers from doing more with it than is meant.
    fileprivate var hardened: HTTPResponse {
        var response = self
        response.headers += Self.protection
        if !headers.contains(where: { $0.name == "Cache-Control" }) {
            response.headers.append(Header("Cache-Control", "no-store"))
        }
        return response
    }

    private static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
        "manifest-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    ]

    private static let protection = [
        Header("Content-Security-Policy", policy.joined(separator: "; ")),
        Header("Cross-Origin-Opener-Policy", "same-origin"),
        Header("Cross-Origin-Resource-Policy", "same-origin"),
        Header("Referrer-Policy", "no-referrer"),
        Header("X-Content-Type-Options", "nosniff"),
        Header("X-Frame-Options", "DENY"),
    ]
}
