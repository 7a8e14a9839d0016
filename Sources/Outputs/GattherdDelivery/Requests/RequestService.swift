import GattherdLog
import GattherdMQTT
import GattherdModel
import GattherdSync

/// Answers requests from MQTT clients.
final class RequestService: Sendable {
    private struct Request: Sendable {
        let message: BrokerMessage
        let topic: Topics.Request
    }

    private let context: DeliveryContext
    private let setControl: MQTTDelivery.ControlHandler
    private let askBridge: MQTTDelivery.BridgeHandler
    private let load = Locked(RequestLoad())
    /// Requests on their way to their handlers; never full, as ``load`` is bounded as well.
    private let requests = AsyncStream.makeStream(
        of: Request.self,
        bufferingPolicy: .bufferingOldest(RequestLoad.maximumCount)
    )

    init(
        _ context: DeliveryContext,
        setControl: @escaping MQTTDelivery.ControlHandler,
        askBridge: @escaping MQTTDelivery.BridgeHandler
    ) {
        self.context = context
        self.setControl = setControl
        self.askBridge = askBridge
    }

    /// Accepts a request, whose response ``serve(_:)`` posts, or returns the response to a refused one.
    func receive(_ message: BrokerMessage, _ request: Topics.Request) -> MQTTResponse? {
        guard !message.isRetained else {
            ignore(message)
            return nil
        }
        guard request.hasValidNames else { return refuse(message, request) }
        context.counters.requests.add()
        if message.length > BrokerMessage.maximum { context.counters.messagesRefused.add() }
        guard load.withLock({ $0.add(message) }) else {
            let error = RequestError(description: "too many requests at once; try again", reason: "busy")
            return response(to: message, request, .failure(error), RequestPayload(message).transaction)
        }
        requests.continuation.yield(Request(message: message, topic: request))
        return nil
    }

    /// Ignores a retained set, because each reconnect would repeat it.
    private func ignore(_ message: BrokerMessage) {
        context.counters.retainedRequestsIgnored.add()
        context.logger.retainedRequest(message.topic)
    }

    /// Refuses a request with an invalid name in its topic, without a handler and without a record.
    ///
    /// A short topic counts as a mistake and is answered.
    private func refuse(_ message: BrokerMessage, _ request: Topics.Request) -> MQTTResponse? {
        context.counters.misnamedRequests.add()
        let topic = message.topic.cut(toBytes: 200)
        context.logger.misnamedRequest(topic, "names are 1 to \(Slug.longest) of a-z, 0-9, '_' and '-'")
        guard topic == message.topic else { return nil }
        let error = RequestError(description: "names in topics are 1 to \(Slug.longest) of a-z, 0-9, '_' and '-'")
        return response(to: message, request, .failure(error), RequestPayload(message).transaction)
    }

    /// Fulfils requests concurrently, started in the order of arrival, until the task is cancelled.
    ///
    /// An immediate task runs here up to the handler's first suspension. A task that starts on the actor would have to
    /// leave it first, and others could overtake it.
    ///
    /// - Parameter post: Publishes a response.
    @concurrent
    func serve(_ post: @escaping @Sendable (MQTTResponse) async -> Void) async {
        await withDiscardingTaskGroup { group in
            for await request in requests.stream {
                group.addImmediateTask {
                    let response = await self.answer(request.message, request.topic)
                    self.load.withLock { $0.remove(request.message) }
                    await post(response)
                }
            }
        }
    }

    private func answer(_ message: BrokerMessage, _ request: Topics.Request) async -> MQTTResponse {
        let payload = RequestPayload(message)
        let outcome: Result<[[UInt8]], RequestError>
        do throws(RequestError) {
            outcome = .success(try await fulfil(request, payload))
        } catch {
            outcome = .failure(error)
        }
        return response(to: message, request, outcome, payload.transaction)
    }

    /// Returns the JSON of the response, or of each of its messages.
    private func fulfil(_ request: Topics.Request, _ payload: RequestPayload) async throws(RequestError) -> [[UInt8]] {
        switch request {
        case .set(let device, let control):
            try checkPermission(control, of: device)
            guard let value = ControlValue(try payload.value("value", and: [RequestPayload.epochKey])) else {
                throw RequestError(description: "a value must be a number, true, false or text")
            }
            var asked = ControlRequest(
                device: device,
                control: control,
                value: value,
                transaction: payload.transaction
            )
            asked.epoch = try payload.epoch
            return try await setControl(asked).map { [$0.json] }
                .mapError { RequestError(description: $0.description, reason: $0.reason) }.get()
        case .bridge(let verb):
            let asked = try BridgeRequest(verb: verb, payload)
            return try await askBridge(asked).map(\.parts).mapError { RequestError(description: $0.detail) }.get()
        }
    }

    /// Throws if the control may not be set; records the refusal as an event, like every other set.
    private func checkPermission(_ control: String, of device: String) throws(RequestError) {
        guard !context.permissions.withLock({ $0.allows(control, of: device) }) else { return }
        context.logger.setNotAllowed(control, of: device)
        throw RequestError(description: "'\(control)' of '\(device)' may not be set by MQTT", reason: "not_allowed")
    }

    private func response(
        to message: BrokerMessage,
        _ request: Topics.Request,
        _ outcome: Result<[[UInt8]], RequestError>,
        _ transaction: String?
    ) -> MQTTResponse {
        let (topic, key) =
            switch request {
            case .set(let device, let control): (context.topics.result(device, control), "value")
            case .bridge(let verb): (context.topics.response(verb), "data")
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
    private func isAnswerable(_ message: BrokerMessage) -> Bool {
        guard let topic = message.responseTopic else { return false }
        let isAllowed =
            context.topics.isAnswerable(topic, homePrefix: context.home.prefix)
            && message.correlation?.count ?? 0 <= MQTTResponse.longestCorrelation
        if !isAllowed { context.counters.messagesRefused.add() }
        return isAllowed
    }
}

/// The requests in progress, bounded in number and in bytes.
///
/// The bound is far above the needs of a person or a script. Each request of a burst on one control must be processed,
/// or the latest value would not win.
struct RequestLoad {
    static let maximumCount = 4096
    /// The maximum size of all their messages, in bytes.
    static let maximumSize = 4 << 20

    private var count = 0
    private var size = 0

    /// Adds a request; returns false if there is no room.
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
    /// The size of the kept part of the message, in bytes.
    fileprivate var size: Int {
        topic.utf8.count + payload.count + (responseTopic?.utf8.count ?? 0) + (correlation?.count ?? 0)
    }
}

extension ControlError {
    /// The reason as one word, for programs.
    fileprivate var reason: String {
        switch self {
        case .noSuchDevice: "unknown_device"
        case .onlyAdvertises: "not_connectable"
        case .noSuchControl: "unknown_control"
        case .invalidValue: "invalid_value"
        case .notReady: "not_ready"
        case .refused: "refused"
        case .notOwner: "not_owner"
        case .otherEpoch: "other_epoch"
        case .repeated: "repeated"
        case .superseded: "superseded"
        case .timedOut: "timed_out"
        }
    }
}
