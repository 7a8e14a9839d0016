import GattherdModel

// Downloads by index: each request is answered by a block of records.
extension DownloadMachine {
    /// Requests the block at ``index``.
    mutating func requestBlock(_ request: RecordRequest, at now: Duration) -> [Step] {
        guard case .blocks(let template, _, let isRead) = procedure else { return [] }
        let steps = write(template, request)
        guard isRead, state != .finished else { return steps }
        return steps + [.read] + drain(request, .success, at: now)
    }

    /// Decides what follows a block.
    mutating func concludeBlock(_ request: RecordRequest, at now: Duration) -> [Step] {
        guard case .blocks(_, let first, _) = procedure else { return [] }
        guard facts.payloads > payloadsBefore, let block = facts.block else {
            return retry("the block at \(index) does not decode", at: now)
        }
        let isFirst = payloadsBefore == 0
        payloadsBefore = facts.payloads
        if let count = block.total { total = Int(clamping: max(0, count)) }
        let (end, overflow) = index.addingReportingOverflow(Int64(max(0, block.count)))
        let next = max(end, block.next ?? end)
        guard block.count > 0, !overflow, !isBeyond(next, block, first) else {
            // A device that was reset has lower numbers only.
            if isFirst, block.count == 0, request.isFiltered { return transfer(.allAfterNone, at: now) }
            return complete()
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
