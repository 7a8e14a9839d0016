import GattherdLog
import GattherdMQTT
import GattherdModel
import GattherdSync

/// What subscribers ask for.
extension MQTTDelivery {
    struct Request: Sendable {
        let message: BrokerMessage
        let topic: Topics.Request
    }

    func receive(_ message: BrokerMessage) {
        guard topics.isReasonable(message.topic) else { return counters.messagesRefused.add() }
        if message.topic == home.status { return welcome(message) }
        guard let request = topics.request(message.topic) else { return inspect(message) }
        guard !message.isRetained else { return ignore(message) }
        guard request.hasValidNames else { return refuse(message, request) }
        accept(message, request)
    }

    /// Refuses a request whose topic names nothing that can exist; nobody else is asked, and nothing is recorded.
    ///
    /// A short topic is taken for a mistake and answered.
    private func refuse(_ message: BrokerMessage, _ request: Topics.Request) {
        counters.misnamedRequests.add()
        let topic = message.topic.cut(toBytes: 200)
        if narrator.mayTell(of: .misnamedRequest, at: now) {
            let advice = "names are 1 to \(Slug.longest) of a-z, 0-9, '_' and '-'"
            log(.warning, "a request is refused for its topic", [.init("mqtt.topic", topic), .init("advice", advice)])
        }
        guard topic == message.topic else { return }
        let error = JSONError(description: "names in topics are 1 to \(Slug.longest) of a-z, 0-9, '_' and '-'")
        post(answer(to: message, request, .failure(error), RequestPayload(message).transaction))
    }

    /// Whoever set it may be long gone, and would not know that it was set again at each reconnect.
    private func ignore(_ message: BrokerMessage) {
        counters.retainedRequestsIgnored.add()
        if narrator.mayTell(of: .retainedRequest, at: now) {
            log(
                .warning,
                "a retained request is ignored; publish it without retain",
                [.init("mqtt.topic", message.topic)]
            )
        }
    }

    private func accept(_ message: BrokerMessage, _ request: Topics.Request) {
        counters.requests.add()
        if message.length > BrokerMessage.maximum { counters.messagesRefused.add() }
        guard load.add(message) else {
            let transaction = RequestPayload(message).transaction
            let error = JSONError(description: "too many requests at once; try again", reason: "busy")
            return post(answer(to: message, request, .failure(error), transaction))
        }
        requests.continuation.yield(Request(message: message, topic: request))
    }

    /// Fulfils requests side by side, begun in the order in which they came.
    ///
    /// An immediate task runs on, in here, up to the handler's first suspension; a task that began on the actor
    /// would have to leave it first, and others could overtake it on the way.
    @concurrent
    nonisolated func serve() async {
        await withDiscardingTaskGroup { group in
            for await request in requests.stream {
                group.addImmediateTask { await self.answer(request.message, request.topic) }
            }
        }
    }

    private nonisolated func answer(_ message: BrokerMessage, _ request: Topics.Request) async {
        let payload = RequestPayload(message)
        let outcome: Result<[[UInt8]], JSONError>
        do throws(JSONError) {
            outcome = .success(try await fulfil(request, payload))
        } catch {
            outcome = .failure(error)
        }
        await finish(message, answer(to: message, request, outcome, payload.transaction))
    }

    private func finish(_ message: BrokerMessage, _ answer: MQTTResponse) {
        load.remove(message)
        post(answer)
    }

    /// Returns the JSON that goes into the answer, or into each message of it.
    private nonisolated func fulfil(
        _ request: Topics.Request,
        _ payload: RequestPayload
    ) async throws(JSONError) -> [[UInt8]] {
        switch request {
        case .set(let device, let control):
            try checkPermission(control, of: device)
            let value = try ControlValue(try payload.value("value"))
            let asked = ControlRequest(
                device: device,
                control: control,
                value: value,
                transaction: payload.transaction
            )
            return try await setControl(asked).map { [$0.json] }
                .mapError { JSONError(description: $0.description, reason: $0.reason) }.get()
        case .bridge(let verb):
            let asked = try BridgeRequest(verb: verb, payload)
            return try await askBridge(asked).map(\.parts).mapError { JSONError(description: $0.detail) }.get()
        }
    }

    /// What is not allowed is kept as an event, as each set is that is carried out or refused.
    private nonisolated func checkPermission(_ control: String, of device: String) throws(JSONError) {
        guard !permissions.withLock({ $0.allows(control, of: device) }) else { return }
        record(["state": .text("set_not_allowed"), "device": .text(device), "control": .text(control)])
        throw JSONError(description: "'\(control)' of '\(device)' may not be set by MQTT", reason: "not_allowed")
    }

    private nonisolated func answer(
        to message: BrokerMessage,
        _ request: Topics.Request,
        _ outcome: Result<[[UInt8]], JSONError>,
        _ transaction: String?
    ) -> MQTTResponse {
        let (topic, key) =
            switch request {
            case .set(let device, let control): (topics.result(device, control), "value")
            case .bridge(let verb): (topics.response(verb), "data")
            }
        return MQTTResponse(
            to: message,
            on: topic,
            outcome,
            key: key,
            transaction: transaction,
            isChosenTopicUsed: isAnswerable(message)
        )
    }

    /// True if the response goes to the request's response topic; otherwise it goes to the gateway's own.
    private nonisolated func isAnswerable(_ message: BrokerMessage) -> Bool {
        guard let topic = message.responseTopic else { return false }
        let isAllowed =
            topics.isAnswerable(topic, homePrefix: home.prefix)
            && message.correlation?.count ?? 0 <= MQTTResponse.longestCorrelation
        if !isAllowed { counters.messagesRefused.add() }
        return isAllowed
    }
}

/// The requests under way, bounded in number and in bytes.
///
/// The bound is far above what a person or a script needs: of a burst on one control each request must be seen, or the
/// latest value would not win.
struct RequestLoad {
    static let maximumCount = 4096
    /// Bytes of all of their messages.
    static let maximumSize = 4 << 20

    private var count = 0
    private var size = 0

    /// False when there is no room for another.
    mutating func add(_ message: BrokerMessage) -> Bool {
        guard count < Self.maximumCount, size + message.size <= Self.maximumSize else { return false }
        count += 1
        size += message.size
        return true
    }

    mutating func remove(_ message: BrokerMessage) {
        count -= 1
        size -= message.size
    }
}

extension BrokerMessage {
    /// In bytes, of what is kept of it.
    fileprivate var size: Int {
        topic.utf8.count + payload.count + (responseTopic?.utf8.count ?? 0) + (correlation?.count ?? 0)
    }
}

extension ControlError {
    /// One word for programs.
    fileprivate var reason: String {
        switch self {
        case .noSuchDevice: "unknown_device"
        case .onlyAdvertises: "not_connectable"
        case .noSuchControl: "unknown_control"
        case .invalidValue: "invalid_value"
        case .notReady: "not_ready"
        case .refused: "refused"
        case .superseded: "superseded"
        case .timedOut: "timed_out"
        }
    }
}
