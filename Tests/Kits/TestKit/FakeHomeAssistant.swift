import FoundationEssentials
public import GattherdSync

/// A server that answers on its WebSocket as Home Assistant does.
public final class FakeHomeAssistant: Sendable {
    /// The state of the server, which tests change.
    public struct Content: Hashable, Sendable {
        public var version = "2025.4.4"
        public var token = "a-token"
        public var state = "RUNNING"
        /// The header `Date` of the handshake.
        public var date: String?
        /// The entities by `unique_id`.
        public var entities: [String: String] = [:]
        /// The elements of `recorder/list_statistic_ids`, as JSON.
        public var statistics: [String] = []
        /// The answers that replace the usual ones, by the type of the request.
        public var answers: [String: [WebSocketServer.Step]] = [:]
        /// The entity whose imports are refused, and the code of the error.
        public var refusedImport: Refusal?
        /// The text of each import, oldest first.
        public fileprivate(set) var imports: [String] = []
        /// The number of accepted tokens.
        public fileprivate(set) var logins = 0

        /// Adds the statistics of an entity.
        public mutating func add(_ entity: String, uniqueID: String, unit: String, class unitClass: String? = nil) {
            entities[uniqueID] = entity
            let name = unitClass.map { "\"\($0)\"" } ?? "null"
            statistics.append(
                """
                {"statistic_id":"\(entity)","has_mean":true,"mean_type":1,"has_sum":false,"source":"recorder",\
                "statistics_unit_of_measurement":"\(unit)","unit_class":\(name)}
                """
            )
        }
    }

    /// The refusal of the imports of one entity.
    public struct Refusal: Hashable, Sendable {
        public var entity: String
        public var code: String

        public init(_ entity: String, code: String) {
            (self.entity, self.code) = (entity, code)
        }
    }

    private struct Request: Decodable {
        let id: Int?
        let type: String
        let access_token: String?
    }

    public let content: LatestValue<Content>
    private let server: WebSocketServer

    public var url: String { "http://127.0.0.1:\(server.port)" }
    public var port: Int { server.port }

    public init(_ change: (inout Content) -> Void = { _ in }) throws {
        var initial = Content()
        change(&initial)
        let content = LatestValue(initial)
        self.content = content
        let handshake = { @Sendable (head: String) in
            // CR LF is one character.
            let response = WebSocketServer.response(to: head)
            return content.state.date.map { response.dropLast() + "Date: \($0)\r\n\r\n" } ?? response
        }
        server = try WebSocketServer(handshake: handshake) { text in
            guard let text else {
                return [.text(#"{"type":"auth_required","ha_version":"\#(content.state.version)"}"#)]
            }
            guard let request = try? JSONDecoder().decode(Request.self, from: Data(text.utf8)) else { return [.close] }
            return Self.answer(request, text, content)
        }
    }

    private static func answer(
        _ request: Request,
        _ text: String,
        _ content: LatestValue<Content>
    ) -> [WebSocketServer.Step] {
        let state = content.state
        if let answer = state.answers[request.type] { return answer }
        func result(_ json: String) -> [WebSocketServer.Step] {
            let event = #"{"id":\#(request.id ?? 0),"type":"event","event":{}}"#
            return [
                .text(event), .text(#"{"id":\#(request.id ?? 0),"type":"result","success":true,"result":\#(json)}"#),
            ]
        }
        switch request.type {
        case "auth":
            guard request.access_token == state.token else { return [.text(#"{"type":"auth_invalid"}"#), .close] }
            content.update { $0.logins += 1 }
            return [.text(#"{"type":"auth_ok","ha_version":"\#(state.version)"}"#)]
        case "get_config": return result(#"{"state":"\#(state.state)"}"#)
        case "config/entity_registry/list":
            let entries = state.entities.map { #"{"entity_id":"\#($1)","unique_id":"\#($0)","platform":"mqtt"}"# }
            return result("[\(entries.joined(separator: ","))]")
        case "recorder/list_statistic_ids": return result("[\(state.statistics.joined(separator: ","))]")
        case "recorder/import_statistics":
            if let refusal = state.refusedImport, text.contains("\"\(refusal.entity)\"") {
                let error = #"{"code":"\#(refusal.code)","message":"no"}"#
                return [.text(#"{"id":\#(request.id ?? 0),"type":"result","success":false,"error":\#(error)}"#)]
            }
            content.update { $0.imports.append(text) }
            return result("null")
        default: return [.close]
        }
    }
}
