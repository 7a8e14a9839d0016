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

    var nextRequest: RecordRequest {
        guard let number = facts.resumption, namesNumbers else { return .all }
        if case .accessControlPoint(let width) = procedure {
            guard canFilter, width > 0, fits(number, width) else { return .all }
            if facts.hasWrapped, let range = range(from: number) { return .within(range) }
        }
        return .from(number)
    }

    /// True if requests contain the number of a record.
    private var namesNumbers: Bool {
        switch procedure {
        case .accessControlPoint: true
        case .request(let template, _): template.contains(.next)
        case .blocks(let template, _, _): isNumbered && (template.contains(.index) || template.contains(.next))
        }
    }

    /// Returns the numbers from `number` on, without those from before the numbers wrapped; `nil` for all numbers.
    ///
    /// A ring whose numbers wrap has less than half of them. Without the range, each of several links that end early
    /// would first bring the same old records.
    func range(from number: Int64) -> ClosedRange<Int64>? {
        guard let highest = facts.highest, canFilterRange,
            case .accessControlPoint(let width) = procedure
        else { return nil }
        let half = highest / 2
        return number <= half && fits(number + half, width) ? number...number + half : nil
    }

    private func fits(_ number: Int64, _ width: Int) -> Bool { number >> Int64(8 * width) == 0 }

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
            case .now: clock()
            }
        }
        guard let octets else { return finish(.failed("a number does not fit into the request")) }
        return [.write(octets)]
    }
}
