/// What a path stands for.
enum Route {
    case health
    case readiness
    case metrics
    case unknown

    init(_ request: HTTPRequest) {
        switch request.path {
        case "/healthz": self = .health
        case "/readyz": self = .readiness
        case "/metrics": self = .metrics
        default: self = .unknown
        }
    }

    var audience: AccessRules.Audience {
        switch self {
        case .health, .readiness, .metrics, .unknown: .readers
        }
    }

    var methods: [HTTPRequest.Method] {
        switch self {
        case .health, .readiness, .metrics: [.get, .head]
        case .unknown: HTTPRequest.Method.allCases
        }
    }
}
