import GattherdDelivery
import GattherdExchange
import GattherdHistory
import GattherdModel
import GattherdSync

/// Answers `bridge/request/history` from the file, as any other reader of it.
final class HistoryDesk: Sendable {
    /// Requests at once; each may hold a few megabytes.
    private static let maximum = 2

    private let path: String
    private let running = Locked(0)

    init(path: String) {
        self.path = path
    }

    /// Reads on a thread of its own, for that waits for the disk.
    func answer(_ request: HistoryRequest) async -> Result<BridgeReply, BridgeFailure> {
        guard takeTurn() else { return .failure(BridgeFailure("history is being read for others; try again")) }
        defer { running.withLock { $0 -= 1 } }
        let (answers, answer) = AsyncStream.makeStream(
            of: Result<BridgeReply, BridgeFailure>.self,
            bufferingPolicy: .bufferingOldest(1)
        )
        _ = NamedThread(name: "history-answer") { [path] in
            answer.yield(Result { () throws(BridgeFailure) in try Self.read(request, path: path) })
            answer.finish()
        }
        for await result in answers { return result }
        return .failure(BridgeFailure("stopping"))
    }

    private func takeTurn() -> Bool {
        running.withLock { running in
            guard running < Self.maximum else { return false }
            running += 1
            return true
        }
    }

    private static func read(_ request: HistoryRequest, path: String) throws(BridgeFailure) -> BridgeReply {
        let query = try HistoryQuery(request)
        let step = try request.step
        var answer = HistoryAnswer(limit: request.limit)
        do throws(StoreFault) {
            let reader = try HistoryReader(path: path)
            if let step {
                try reader.buckets(query, every: step) { bucket in answer.add(bucket) }
            } else {
                try reader.rows(query) { row in answer.add(row) }
            }
        } catch {
            throw BridgeFailure(error.detail)
        }
        return BridgeReply(answer)
    }
}

extension HistoryQuery {
    fileprivate init(_ request: HistoryRequest) throws(BridgeFailure) {
        let now = SystemClock.now
        func instant(_ text: String?) throws(BridgeFailure) -> Timestamp? {
            guard let text else { return nil }
            if let instant = TimeExpression.instant(text, now: now) { return instant }
            throw BridgeFailure("'\(text)' is not a time; write \(TimeExpression.help)")
        }
        self.init(
            device: request.device,
            metric: request.metric,
            since: try instant(request.since),
            until: try instant(request.until)
        )
    }
}

extension HistoryRequest {
    fileprivate var step: Duration? {
        get throws(BridgeFailure) {
            guard let every else { return nil }
            if let step = TimeExpression.duration(every) { return step }
            throw BridgeFailure("'\(every)' is not a length of time; write for example 30s, 5m or 1h")
        }
    }
}

extension HistoryAnswer {
    fileprivate mutating func add(_ row: HistoryRow) -> Bool {
        add(row.time) { writer in
            writer.key("seq")
            writer.integer(row.seq)
            writer.key("device")
            writer.string(row.series.device)
            writer.key("metric")
            writer.string(row.series.metric)
            writer.key("value")
            writer.value(row.value)
            writer.key("unit")
            writer.optional(row.series.unit) { $0.string($1) }
            writer.key("source")
            writer.string(row.series.source)
        }
    }

    fileprivate mutating func add(_ bucket: HistoryBucket) -> Bool {
        add(bucket.time) { writer in
            writer.key("device")
            writer.string(bucket.device)
            writer.key("metric")
            writer.string(bucket.metric)
            writer.key("n")
            writer.integer(bucket.n)
            writer.key("min")
            writer.value(bucket.min)
            writer.key("mean")
            writer.real(bucket.mean)
            writer.key("max")
            writer.value(bucket.max)
            writer.key("unit")
            writer.optional(bucket.unit) { $0.string($1) }
        }
    }
}
