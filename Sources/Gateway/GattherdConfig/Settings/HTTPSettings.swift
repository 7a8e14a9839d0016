/// A TCP address to listen on.
package struct ListenAddress: Hashable, Sendable {
    package var host: String
    package var port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// True if only this host can reach the address.
    package var isLoopback: Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        let isIPv4 = parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
        return host == "localhost" || host == "::1" || isIPv4
    }
}

/// The section `http`.
package struct HTTPSettings: Hashable, Sendable {
    package var listen: ListenAddress
    /// The file with the token in its first line; required off loopback.
    package var tokenFile: Located<String>?
    /// Further names of the server, besides its addresses and the host's own name.
    package var hosts: [String] = []
    /// True if Prometheus also gets the newest sample of each metric of each device.
    package var hasSampleMetrics = false

    package init(listen: ListenAddress) {
        self.listen = listen
    }
}
