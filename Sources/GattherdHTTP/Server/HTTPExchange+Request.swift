import CMicroHTTPD

extension HTTPRequest {
    /// Reads what libmicrohttpd knows once it has the headers; `nil` for a method that we do not have.
    init?(_ connection: OpaquePointer, url: UnsafePointer<CChar>?, method: UnsafePointer<CChar>?) {
        guard let url = unsafe url, let name = unsafe method,
            let method = HTTPRequest.Method(rawValue: unsafe String(cString: name))
        else { return nil }
        self.init(method, unsafe String(cString: url))
        query = unsafe ValueCollector.values(of: connection, .GET_ARGUMENT_KIND) { $0 }
        headers = unsafe ValueCollector.values(of: connection, .HEADER_KIND) { $0.lowercased() }
    }
}

/// Takes names and values from libmicrohttpd.
private final class ValueCollector {
    private var values: [String: String] = [:]
    private let normal: (String) -> String
    private let joins: Bool

    private init(joining joins: Bool, _ normal: @escaping (String) -> String) {
        self.joins = joins
        self.normal = normal
    }

    static func values(
        of connection: OpaquePointer,
        _ kind: MHD_ValueKind,
        _ normal: @escaping (String) -> String
    ) -> [String: String] {
        let collector = ValueCollector(joining: kind == .HEADER_KIND, normal)
        unsafe MHD_get_connection_values(
            connection,
            kind,
            { collector, _, name, value in
                guard let collector = unsafe collector, let name = unsafe name else { return .YES }
                let text = unsafe value.map { unsafe String(cString: $0) } ?? ""
                unsafe Unmanaged<ValueCollector>.fromOpaque(collector).takeUnretainedValue()
                    .add(String(cString: name), text)
                return .YES
            },
            Unmanaged.passUnretained(collector).toOpaque()
        )
        return collector.values
    }

    private func add(_ name: String, _ value: String) {
        let name = normal(name)
        guard let first = values[name] else { return values[name] = value }
        if joins { values[name] = first + ", " + value }
    }
}
