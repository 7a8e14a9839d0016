import GattherdYAML

// Numbers and positions in scenarios.
extension MappingFields {
    mutating func number(_ key: String, in range: ClosedRange<Double>) -> Double? {
        value(key, "a number from \(range.lowerBound.brief) to \(range.upperBound.brief)") { text in
            Double(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// The position at `key`: a list of two coordinates.
    mutating func position(_ key: String) -> ScenarioPosition? {
        node(key).flatMap(position)
    }

    /// The waypoints at `key`: a mapping of ascending times to positions.
    mutating func path(_ key: String) -> [Waypoint]? {
        guard let node = node(key) else { return nil }
        guard let members = node.members, !members.isEmpty else {
            problems.add(
                "'\(key)' must be a mapping of times to positions; write for example {0s: [0, 2], 30s: [25, 2]}",
                at: node.position
            )
            return nil
        }
        var waypoints: [Waypoint] = []
        for member in members {
            guard let time = parsed(member.key, ScenarioValue.durationWords, ScenarioValue.duration),
                let position = position(member.value)
            else { continue }
            if let last = waypoints.last, time <= last.time {
                problems.add("the times of '\(key)' must ascend; move this one up", at: member.key.position)
            }
            waypoints.append(Waypoint(time: time, position: position))
        }
        return waypoints
    }

    private func position(_ node: YAMLNode) -> ScenarioPosition? {
        guard let elements = node.elements, elements.count == 2 else {
            problems.add("a position has two coordinates in metres; write for example [12, 3.5]", at: node.position)
            return nil
        }
        let coordinates = elements.compactMap { element in
            parsed(element, "a number of metres from -10000 to 10000") { text in
                Double(text).flatMap { abs($0) <= 10_000 ? $0 : nil }
            }
        }
        return coordinates.count == 2 ? ScenarioPosition(x: coordinates[0], y: coordinates[1]) : nil
    }
}

extension ScenarioPosition {
    static let origin = ScenarioPosition(x: 0, y: 0)
}

extension Double {
    /// The number without a needless fraction.
    fileprivate var brief: String { self == rounded() ? "\(Int(self))" : "\(self)" }
}
