/// A correction of the rows of one clock span, in which the wall clock had a constant error, with its progress.
struct ClockShift {
    enum Phase: Int64 {
        case events, rejects, samples, oldMinutes, newMinutes, journal
    }

    let id: Int64
    /// In microseconds.
    let shift: Int64
    /// The rows of the span have higher numbers than this, up to and including ``through``.
    let after: Int64
    let through: Int64
    /// The time range of the span, by its own clock.
    let times: Range<Int64>
    /// The earliest time of a row of the span: records of the past may be from before ``times``.
    let earliest: Int64
    var phase: Phase
    /// The position at which the phase continues: an id, an instant, or a sample's key.
    var place: RowPosition
}

extension ClockShift {
    /// True if an entry with this number belongs to the span.
    func covers(_ seq: Int64) -> Bool { seq > after && seq <= through }

    /// Returns the time that a sample at this place has after the correction, which may have moved it already.
    func correctedTime(of place: RowPosition) -> Int64 { isPending(place) ? place.ts &+ shift : place.ts }

    /// True if the correction will move the sample at this place.
    ///
    /// No sample is moved to a place that ``SampleMover`` visits later.
    private func isPending(_ sample: RowPosition) -> Bool {
        guard covers(sample.second), sample.ts >= earliest, sample.ts < times.upperBound else { return false }
        switch phase {
        case .events, .rejects: return true
        case .samples: return shift > 0 ? sample < place : place < sample
        case .oldMinutes, .newMinutes, .journal: return false
        }
    }
}

extension [ClockShift] {
    /// Returns the time that a sample at this place has after these corrections, which are made in order.
    func correctedTime(of place: RowPosition) -> Int64 {
        var place = place
        for shift in self { place.ts = shift.correctedTime(of: place) }
        return place.ts
    }
}
