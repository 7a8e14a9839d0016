import GattherdDelivery
import GattherdExchange
import GattherdHTTP
import GattherdHistory
import GattherdModel
import GattherdSync

/// Reads history from its file for requests by MQTT and HTTP.
final class HistoryService: Sendable {
    private let path: String
    private let places: RequestPlaces

    /// - Parameters:
    ///   - path: The path of the database.
    ///   - maximum: The maximum number of requests at once; each may hold a few megabytes.
    init(path: String, maximum: Int) {
        self.path = path
        places = RequestPlaces(maximum)
    }

    /// Answers `bridge/request/history`.
    func answer(_ request: HistoryRequest) async -> Result<BridgeReply, BridgeFailure> {
        await read { (reader) throws(BackendError) in
            var answer = HistoryResponse(limit: request.limit)
            try reader.fill(&answer, with: RecordSpan(request))
            return BridgeReply(answer)
        }
        .mapError { BridgeFailure($0.detail) }
    }

    /// Answers `/api/v1/history`.
    func page(_ query: RecordQuery) async -> Result<[UInt8], BackendError> {
        await read { (reader) throws(BackendError) in
            var page = HistoryPage(limit: query.limit)
            try reader.fill(&page, with: RecordSpan(query))
            return page.finish()
        }
    }

    /// Answers `/api/v1/events`.
    func events(_ query: RecordQuery) async -> Result<[UInt8], BackendError> {
        await read { (reader) throws(BackendError) in
            let events = try readable { () throws(StoreFault) in
                try reader.events(device: query.device, newest: query.limit)
            }
            return JSONWriter.bytes { writer in
                writer.array(events) { $0.event($1) }
            }
        }
    }

    /// Answers `/api/v1/rejects`.
    func rejects(_ query: RecordQuery) async -> Result<[UInt8], BackendError> {
        await read { (reader) throws(BackendError) in
            let rejects = try readable { () throws(StoreFault) in
                try reader.rejects(device: query.device, newest: query.limit)
            }
            return JSONWriter.bytes { writer in
                writer.array(rejects) { $0.reject($1) }
            }
        }
    }

    /// Runs `body` on a thread of its own, because the disk may block it.
    ///
    /// A request whose task is cancelled stops reading, and counts until then.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (HistoryReader) throws(BackendError) -> Value
    ) async -> Result<Value, BackendError> {
        guard let place = places.take() else {
            return .failure(BackendError(.unavailable, "too many history requests at once; try again"))
        }
        let isWanted = Locked(true)
        let result = await withTaskCancellationHandler {
            await NamedThread.result(name: "history-answer") { [path] in
                defer { place.free() }
                return Result { () throws(BackendError) in
                    try body(
                        readable { () throws(StoreFault) in
                            try HistoryReader(path: path) { isWanted.withLock { $0 } }
                        }
                    )
                }
            }
        } onCancel: {
            isWanted.withLock { $0 = false }
        }
        return result ?? .failure(BackendError(.unavailable, "the request was cancelled"))
    }
}

/// The places of requests that run at once.
private final class RequestPlaces: Sendable {
    /// The place of one request; the last reference frees it, if its thread was never started.
    final class Place: Sendable {
        private let places: RequestPlaces
        private let isTaken = Locked(true)

        init(_ places: RequestPlaces) {
            self.places = places
        }

        deinit {
            free()
        }

        func free() {
            let wasTaken = isTaken.withLock { isTaken in
                defer { isTaken = false }
                return isTaken
            }
            if wasTaken { places.taken.withLock { $0 -= 1 } }
        }
    }

    private let maximum: Int
    private let taken = Locked(0)

    init(_ maximum: Int) {
        self.maximum = maximum
    }

    /// Takes a place; `nil` while none is free.
    func take() -> Place? {
        let hasRoom = taken.withLock { taken in
            guard taken < maximum else { return false }
            taken += 1
            return true
        }
        return hasRoom ? Place(self) : nil
    }
}

/// Runs `body`; an unreadable file becomes an error for the client.
private func readable<Value>(_ body: () throws(StoreFault) -> Value) throws(BackendError) -> Value {
    do throws(StoreFault) {
        return try body()
    } catch {
        throw BackendError(.unreadable, error.detail)
    }
}

extension HistoryReader {
    fileprivate func fill(_ collector: inout some RowCollector, with span: RecordSpan) throws(BackendError) {
        do throws(StoreFault) {
            if let step = span.step {
                try buckets(span.query, every: step) { bucket in collector.add(bucket) }
            } else {
                try rows(span.query) { row in collector.add(row) }
            }
        } catch {
            throw BackendError(.unreadable, error.detail)
        }
    }
}

/// The arguments that requests by MQTT and by HTTP have in common.
private protocol RecordArguments {
    var device: String? { get }
    var stream: String? { get }
    var metric: String? { get }
    var since: String? { get }
    var until: String? { get }
    var every: String? { get }
}

extension HistoryRequest: RecordArguments {}
extension RecordQuery: RecordArguments {}

/// The query of a request, for samples or for spans of them.
private struct RecordSpan {
    let query: HistoryQuery
    /// The length of a span; `nil` for samples.
    let step: Duration?

    init(_ request: some RecordArguments) throws(BackendError) {
        let (since, until) = (try Self.instant(request.since), try Self.instant(request.until))
        query = HistoryQuery(
            device: request.device,
            stream: request.stream,
            metric: request.metric,
            since: since,
            until: until
        )
        step = try Self.step(request.every)
    }

    private static func instant(_ text: String?) throws(BackendError) -> Timestamp? {
        guard let text else { return nil }
        if let instant = TimeExpression.instant(text, now: SystemClock.now) { return instant }
        throw BackendError(.invalid, "'\(text)' is not a time; write \(TimeExpression.help)")
    }

    private static func step(_ text: String?) throws(BackendError) -> Duration? {
        guard let text else { return nil }
        if let step = TimeExpression.duration(text) { return step }
        throw BackendError(.invalid, "'\(text)' is not a length of time; write for example 30s, 5m or 1h")
    }
}

extension HistoryResponse: RowCollector {}
