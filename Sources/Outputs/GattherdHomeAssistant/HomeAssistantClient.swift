package import GattherdHTTPClient
package import GattherdModel

/// The address of a Home Assistant, and the token for it.
package struct HomeAssistantServer: Sendable {
    /// The URL without a slash at its end.
    package var url: String
    /// The host as the URL has it, with its port if it has one.
    package var host: String
    /// The path before that of the API; empty for most servers.
    package var path: String
    /// A long-lived access token.
    package var token: String
    package var files = HTTPTLSFiles()

    package init(url: String, host: String, path: String, token: String) {
        (self.url, self.host, self.path, self.token) = (url, host, path, token)
    }
}

/// A connection to the WebSocket API of Home Assistant.
///
/// Calls block and belong to one thread.
package final class HomeAssistantClient {
    /// The longest time from a request to its answer.
    private static let longestAnswer = Duration.seconds(60)
    /// The most bytes of an answer; the registry of 20,000 entities has 14 MB.
    private static let largestAnswer = 16 << 20
    /// The longest message of an error in bytes; errors get into the status and the log.
    private static let longestMessage = 400

    /// The version of Home Assistant, for example `2025.4.4`.
    package private(set) var version = ""
    /// The time of Home Assistant's clock at the start of the connection, if it is known.
    package var time: Timestamp? { socket.serverTime.map { Timestamp(microseconds: 0).advanced(by: .seconds($0)) } }
    private let server: HomeAssistantServer
    private let socket: WebSocket
    private var lastID: Int64 = 0

    /// Connects and authenticates with the token.
    ///
    /// - Parameters:
    ///   - server: The server.
    ///   - isCancelled: Returns true to end calls soon.
    /// - Throws: ``HomeAssistantError``.
    package init(
        _ server: HomeAssistantServer,
        isCancelled: @escaping () -> Bool = { false }
    ) throws(HomeAssistantError) {
        let path = "\(server.path)/api/websocket"
        var request = WebSocketRequest(url: "\(server.url)/api/websocket", host: server.host, path: path)
        request.files = server.files
        request.longestMessage = Self.largestAnswer
        self.server = server
        do throws(HTTPClientError) {
            socket = try WebSocket(request, isCancelled: isCancelled)
        } catch {
            throw HomeAssistantError(error, server)
        }
        try authenticate()
    }

    /// Sends a request and awaits its answer.
    ///
    /// - Parameters:
    ///   - type: The type of the request, for example `get_config`.
    ///   - members: Writes the request's further members.
    /// - Returns: The result.
    /// - Throws: ``HomeAssistantError``.
    package func request(
        _ type: String,
        _ members: (inout JSONWriter) -> Void = { _ in }
    ) throws(HomeAssistantError) -> JSONValue {
        lastID += 1
        let id = lastID
        try send { writer in
            writer.key("id")
            writer.integer(id)
            writer.key("type")
            writer.string(type)
            members(&writer)
        }
        let end = ContinuousClock.now + Self.longestAnswer
        while true {
            let answer = try receive()
            if answer["type"]?.text == "result", answer["id"] == .integer(id) { return try result(answer, of: type) }
            guard ContinuousClock.now < end else {
                throw HomeAssistantError(.unavailable, "\(server.url) does not answer '\(type)'; try again later")
            }
        }
    }

    /// Ends the connection.
    package func close() { socket.close() }

    private func authenticate() throws(HomeAssistantError) {
        guard try receive()["type"]?.text == "auth_required" else { throw unexpected }
        try send { [token = server.token] writer in
            writer.key("type")
            writer.string("auth")
            writer.key("access_token")
            writer.string(token)
        }
        let answer = try receive()
        switch answer["type"]?.text {
        case "auth_ok": version = answer["ha_version"]?.text ?? ""
        case "auth_invalid":
            let advice =
                "create a long-lived access token in the profile of an administrator, and write it into the file"
            throw HomeAssistantError(.misconfigured, "\(server.url) refuses the token; \(advice)")
        default: throw unexpected
        }
    }

    private func result(_ answer: JSONObject, of type: String) throws(HomeAssistantError) -> JSONValue {
        if answer["success"] == .boolean(true) { return answer["result"] ?? .null }
        let error = JSONObject(answer["error"])
        let message = error["message"]?.text?.cut(toBytes: Self.longestMessage) ?? "no reason is given"
        let words = "\(server.url) refuses '\(type)': \(message)"
        switch error["code"]?.text {
        case "unauthorized":
            throw HomeAssistantError(.misconfigured, "\(words); use a token of an administrator")
        case "unknown_command":
            throw HomeAssistantError(.misconfigured, "\(words); it needs the integrations 'recorder' and 'config'")
        case "invalid_format", "home_assistant_error": throw HomeAssistantError(.refused, words)
        default: throw HomeAssistantError(.unavailable, words)
        }
    }

    private func send(_ members: (inout JSONWriter) -> Void) throws(HomeAssistantError) {
        let text = JSONWriter.bytes { writer in
            writer.beginObject()
            members(&writer)
            writer.endObject()
        }
        do throws(HTTPClientError) { try socket.send(text) } catch { throw HomeAssistantError(error, server) }
    }

    private func receive() throws(HomeAssistantError) -> JSONObject {
        let text: [UInt8]
        do throws(HTTPClientError) { text = try socket.receive() } catch { throw HomeAssistantError(error, server) }
        do throws(JSONError) { return try JSONObject(text, maximum: Self.largestAnswer) } catch { throw unexpected }
    }

    private var unexpected: HomeAssistantError {
        HomeAssistantError(.misconfigured, "\(server.url) does not answer as Home Assistant does; check the URL")
    }
}

/// The members of a JSON object by name.
struct JSONObject {
    private let members: [String: JSONValue]

    /// Reads an object.
    init(_ text: [UInt8], maximum: Int) throws(JSONError) {
        var members: [String: JSONValue] = [:]
        try JSONReader.forEachMember(of: text[...], maximum: maximum) { members[$0] = $1 }
        self.members = members
    }

    /// Creates an object without members if the value is none.
    init(_ value: JSONValue?) {
        guard case .object(let list) = value else {
            members = [:]
            return
        }
        members = Dictionary(list.map { ($0.name, $0.value) }) { first, _ in first }
    }

    subscript(name: String) -> JSONValue? { members[name] }
}

extension JSONValue {
    var text: String? { if case .string(let text) = self { text } else { nil } }
    var elements: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }
}
