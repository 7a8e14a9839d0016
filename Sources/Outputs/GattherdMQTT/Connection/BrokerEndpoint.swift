/// A password or another secret, which always prints as `***`.
public struct Secret: Hashable, Sendable {
    package let text: String

    public init(_ text: String) {
        self.text = text
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var debugDescription: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The address of a broker, and the time limit for its answers.
package struct BrokerEndpoint: Hashable, Sendable {
    /// The longest wait for one of several addresses.
    private static let maximumPerAddress = Duration.seconds(5)

    /// The host name or address.
    package var host: String
    package var port: UInt16
    /// The TLS settings; `nil` for a connection without TLS.
    package var tls: TLSSettings?
    package var connectTimeout: Duration

    package init(host: String, port: UInt16, tls: TLSSettings?, connectTimeout: Duration) {
        self.host = host
        self.port = port
        self.tls = tls
        self.connectTimeout = connectTimeout
    }

    /// Resolves the host and connects to one of its addresses.
    ///
    /// Blocks; the name lookup may take long. The TLS files are read for each connection, so that a renewed certificate
    /// is used from the next one on.
    ///
    /// - Parameter first: The index of the first address to try, modulo their number.
    /// - Returns: A connected socket.
    /// - Throws: ``DialError`` if no address can be connected to.
    package func dial(first: Int) throws(DialError) -> DialledConnection {
        let addresses: [String]
        do throws(ResolverError) { addresses = try HostAddresses.resolve(host) } catch { throw .resolver(error) }
        let context = try tlsContext()
        let limit = min(Self.maximumPerAddress, connectTimeout / max(1, addresses.count))
        var failure = DialError.noAddress
        for offset in addresses.indices {
            let address = addresses[(first + offset) % addresses.count]
            do throws(MQTTConnectionError) {
                return DialledConnection(socket: try .connect(to: address, port, within: limit), tls: context)
            } catch {
                failure = .refused(error, address: address)
            }
        }
        throw failure
    }

    private func tlsContext() throws(DialError) -> TLSContext? {
        guard let tls else { return nil }
        do throws(TLSFileError) { return try TLSContext(tls, host: host) } catch { throw .tls(error) }
    }
}

/// A connected socket and its TLS context, passed from the dialling thread to the session.
package struct DialledConnection: Sendable {
    package let socket: StreamSocket
    package let tls: TLSContext?
}

/// The reason why a broker could not be dialled.
package enum DialError: Error, Hashable, Sendable, CustomStringConvertible {
    case resolver(ResolverError)
    case tls(TLSFileError)
    case refused(MQTTConnectionError, address: String)
    case noAddress

    /// True if the broker's host is there, and no program listens on the port.
    package var isRefusedConnection: Bool {
        if case .refused(let error, _) = self { error.isRefusedConnection } else { false }
    }

    package var description: String {
        switch self {
        case .resolver(let error): "\(error)"
        case .tls(let error): "\(error)"
        case .refused(let error, let address): "\(error) (\(address))"
        case .noAddress: "the host name has no address"
        }
    }
}
