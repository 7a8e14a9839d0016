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
        var refusing: Set<String> = []
        for offset in addresses.indices {
            let address = addresses[(first + offset) % addresses.count]
            do throws(MQTTConnectionError) {
                let socket = try StreamSocket.connect(to: address, port, within: limit)
                return DialledConnection(socket: socket, tls: context, address: address, refusing: refusing)
            } catch {
                if error.isRefusedConnection { refusing.insert(address) }
                failure = .unconnected(error, address: address, refusing: refusing)
            }
        }
        throw failure
    }

    /// True if the host at a numeric address refuses a connection; blocks for at most `limit`.
    package func isRefused(at address: String, within limit: Duration) -> Bool {
        do throws(MQTTConnectionError) {
            _ = try StreamSocket.connect(to: address, port, within: limit)
            return false
        } catch {
            return error.isRefusedConnection
        }
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
    /// The numeric address of the broker.
    package let address: String
    /// The addresses whose hosts refused a connection before.
    package let refusing: Set<String>
}

/// The reason why a broker could not be dialled.
package enum DialError: Error, Hashable, Sendable, CustomStringConvertible {
    case resolver(ResolverError)
    case tls(TLSFileError)
    /// No address can be connected to; the error and the address are the last ones.
    case unconnected(MQTTConnectionError, address: String, refusing: Set<String>)
    case noAddress

    /// True if the host at an address is there, and no program listens on the port.
    package func isRefused(at address: String) -> Bool {
        if case .unconnected(_, _, let refusing) = self { refusing.contains(address) } else { false }
    }

    package var description: String {
        switch self {
        case .resolver(let error): "\(error)"
        case .tls(let error): "\(error)"
        case .unconnected(let error, let address, _): "\(error) (\(address))"
        case .noAddress: "the host name has no address"
        }
    }
}
