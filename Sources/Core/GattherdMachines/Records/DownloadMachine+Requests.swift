import GattherdModel

// The requests of a download.
extension DownloadMachine {
    /// Starts with a count, if the procedure has one.
    mutating func start(at now: Duration) -> [Step] {
        let request = nextRequest
        guard case .accessControlPoint(let width) = procedure else { return transfer(request, at: now) }
        state = .counting(request)
        (lastChange, total, counted) = (now, nil, nil)
        return [.write([4] + AccessControlPoint.filter(request, width: width))]
    }

    var nextRequest: RecordRequest { choice.next(after: facts) }

    mutating func transfer(
        _ request: RecordRequest,
        _ relation: RecordRequest.Relation = .new,
        at now: Duration
    ) -> [Step] {
        requests += 1
        guard requests <= Self.mostRequests else { return finish(.failed("the device sends records without end")) }
        state = .transferring(request)
        (lastCount, lastChange) = (0, now)
        begun += 1
        (self.relation, isRequesting) = (relation, true)
        let begin = Step.begin(request, relation)
        switch procedure {
        case .accessControlPoint(let width):
            return [begin, .write([1] + AccessControlPoint.filter(request, width: width))]
        case .request(let template, _):
            return [begin] + write(template, request)
        case .blocks(_, let first, _):
            index = isNumbered ? max(first, request.lowest) : first
            payloadsBefore = 0
            return [begin] + requestBlock(request, at: now)
        }
    }

    mutating func write(_ template: WriteTemplate, _ request: RecordRequest) -> [Step] {
        let (facts, index, clock) = (facts, index, clock)
        let octets = template.octets { variable in
            switch variable {
            case .next: request.lowest
            case .index: index
            case .since: max(0, facts.newest ?? 0)
            case .time(let unit): WriteTime(seconds: clock(), offset: 0)[unit]
            case .option: nil
            }
        }
        guard let octets else { return finish(.failed("a number does not fit into the request")) }
        return [.write(octets)]
    }
}

// Downloads by index: each request is answered by a block of records.
extension DownloadMachine {
    /// Requests the block at ``index``.
    mutating func requestBlock(_ request: RecordRequest, at now: Duration) -> [Step] {
        guard case .blocks(let template, _, let isRead) = procedure else { return [] }
        rereads = 0
        let steps = write(template, request)
        guard isRead, state != .finished else { return steps }
        return steps + readBlock(request, at: now)
    }

    /// Reads the requested block, and waits until it is decoded.
    mutating func readBlock(_ request: RecordRequest, at now: Duration) -> [Step] {
        [Step.read] + drain(request, .success, at: now)
    }

    /// Reads a block again after a pause; after several such reads, requests it again.
    ///
    /// An Aranet4 answers with an empty block, or with one of another kind, until it has the requested one.
    private mutating func reread(_ request: RecordRequest, _ reason: String, at now: Duration) -> [Step] {
        guard case .blocks(_, _, true) = procedure, rereads < Self.attempts else { return retry(reason, at: now) }
        rereads += 1
        (state, lastChange) = (.waiting(request), now)
        return []
    }

    /// Decides what follows a block.
    mutating func concludeBlock(_ request: RecordRequest, at now: Duration) -> [Step] {
        guard case .blocks(_, let first, _) = procedure else { return [] }
        guard facts.payloads > payloadsBefore, let block = facts.block else {
            return reread(request, "the block at \(index) does not decode", at: now)
        }
        let isFirst = payloadsBefore == 0
        payloadsBefore = facts.payloads
        if let count = block.total { total = Int(clamping: max(0, count)) }
        let (end, overflow) = index.addingReportingOverflow(Int64(max(0, block.count)))
        let next = max(end, block.next ?? end)
        let isEnd = isBeyond(next, block, first)
        if block.count <= 0, block.total != nil, !isEnd {
            return reread(request, "the block at \(index) is empty", at: now)
        }
        guard block.count > 0, !overflow, !isEnd else {
            // A device that was reset has lower numbers only.
            if isFirst, block.count == 0, request.isFiltered { return transfer(.allAfterNone, at: now) }
            // A device that overwrites its first record meanwhile moves all others to lower indexes.
            if facts.hasHoles, let again = repetition(of: request) {
                return transfer(again.request, again.relation, at: now)
            }
            return complete(at: now)
        }
        guard facts.count <= Self.mostRecords else { return finish(.failed("the device sends records without end")) }
        // After its highest number, the device continues with 0.
        index = isNumbered ? facts.highest.map { next & $0 } ?? next : next
        return continueTransfer(request, at: now)
    }

    /// True if the device has no record with this index.
    private func isBeyond(_ next: Int64, _ block: DownloadFacts.Block, _ first: Int64) -> Bool {
        guard let total = block.total else { return false }
        return next.subtractingReportingOverflow(first).partialValue >= total
    }
}
