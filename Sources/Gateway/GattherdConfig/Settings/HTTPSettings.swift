/// A TCP address to listen on.
public struct ListenAddress: Hashable, Sendable {
    public var host: String
    public var port: UInt16

    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Nobody but this host can reach it.
    public var isLoopback: Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        let isIPv4 = parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
        return host == "localhost" || host == "::1" || isIPv4
    }
}

/// The section `http`.
public struct HTTPSettings: Hashable, Sendable {
    public var listen: ListenAddress
    /// The token is the first line of this file; needed off loopback.
    public var tokenFile: Located<String>?
    /// What the server may be called besides by its addresses and the host's own name.
    public var hosts: [String] = []
    /// The newest sample of each metric of each device is among the metrics.
    public var hasSampleMetrics = false

    public init(listen: ListenAddress) {
        self.listen = listen
    }
}
