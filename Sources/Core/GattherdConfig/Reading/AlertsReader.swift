import GattherdModel

/// Reads the list `alerts`.
struct AlertsReader {
    private static let title = "an alert"
    /// The keys that choose a condition; an alert has exactly one of them.
    private static let conditions = ["silent_for", "battery_below", "metric"]

    /// The names of all devices, in order and for look-ups; `nil` if rules of `enrol` can add others.
    private let devices: (ordered: [String], all: Set<String>)?

    /// - Parameter devices: The names of all devices; `nil` if rules of `enrol` can add others.
    init(devices: [String]?) {
        self.devices = devices.map { ($0, Set($0)) }
    }

    /// Reads the rules.
    ///
    /// - Parameters:
    ///   - top: The whole configuration.
    ///   - metrics: Receives the metrics that rules name.
    /// - Returns: The valid rules.
    func rules(_ top: SectionReader, metrics: inout [Located<String>]) -> [AlertRule] {
        var names: [String: ConfigPlace] = [:]
        return top.sections("alerts", title: Self.title) { section in
            let name = section.required("name", .slug)
            let device = device(section)
            let condition = condition(section, &metrics)
            let hysteresis = section.value("hysteresis", .magnitude)?.value
            let holding = section.value("for", .duration(.zero ... .seconds(30 * 86_400)))?.value
            if let name, let place = name.place {
                if let first = names[name.value] {
                    section.report(.duplicate(name.value, what: "name", first: first.description), at: place)
                }
                names[name.value] = names[name.value] ?? place
            }
            checkWidth(of: condition, hysteresis ?? 0, section)
            guard let name, let condition else { return nil }
            return AlertRule(
                name: name.value,
                device: device,
                condition: condition,
                hysteresis: hysteresis ?? 0,
                holding: holding ?? .zero
            )
        }
    }

    private func device(_ section: SectionReader) -> String? {
        guard let device = section.value("device", .slug) else { return nil }
        if let devices, !devices.all.contains(device.value), let place = device.place {
            let nearest = section.nearest(to: device.value, among: devices.ordered)
            let advice = nearest.map { "did you mean '\($0)'?" } ?? "'devices' has no such name"
            section.report(.invalid(device.value, expected: "the name of a device", advice: advice), at: place)
        }
        return device.value
    }

    private func condition(_ section: SectionReader, _ metrics: inout [Located<String>]) -> AlertRule.Condition? {
        let silence = section.value("silent_for", .duration(.seconds(1) ... .seconds(365 * 86_400)))?.value
        let battery = section.value("battery_below", .number)?.value
        let metric = section.value("metric", .text)
        if let metric { metrics.append(metric) }
        let (below, above) = (section.value("below", .number)?.value, section.value("above", .number)?.value)
        let present = Self.conditions.filter { section.place(of: $0) != nil }
        if let place = section.place, present.count != 1 {
            let advice = "an alert has exactly one of 'silent_for', 'battery_below' and 'metric'"
            section.report(.conflict(advice), at: place)
        }
        checkBounds(section, hasMetric: present == ["metric"])
        if let silence { return .silent(silence) }
        if let battery { return .batteryBelow(battery) }
        return metric.map { .outside(metric: $0.value, below: below, above: above) }
    }

    /// Reports bounds between which no value clears the alert.
    private func checkWidth(of condition: AlertRule.Condition?, _ hysteresis: Double, _ section: SectionReader) {
        guard case .outside(_, let below?, let above?)? = condition, below + hysteresis > above - hysteresis,
            let place = section.place(of: "hysteresis") ?? section.place(of: "above")
        else { return }
        let advice = "no value from 'below' to 'above' is inside by 'hysteresis', so the alert would stay raised"
        section.report(.conflict(advice), at: place)
    }

    /// Reports bounds without a metric, and a metric without bounds.
    private func checkBounds(_ section: SectionReader, hasMetric: Bool) {
        let bounds = ["below", "above"].compactMap { section.place(of: $0) }
        if hasMetric, bounds.isEmpty, let place = section.place(of: "metric") {
            let advice = "say which values are wrong"
            section.report(.missing(key: "below' or 'above", section: Self.title, advice: advice), at: place)
        }
        if !hasMetric, let place = bounds.first {
            let advice = "the bounds are those of a metric"
            section.report(.missing(key: "metric", section: Self.title, advice: advice), at: place)
        }
    }
}

extension ConfigGrammar where Value == Double {
    static var number: Self {
        ConfigGrammar(noun: "a number", advice: "write for example -15 or 0.5", shape: .number(from: nil)) { text in
            Double(text).flatMap { $0.isFinite ? $0 : nil }
        }
    }

    /// The grammar of a number that is not negative.
    static var magnitude: Self {
        ConfigGrammar(noun: "a number of 0 or more", advice: "write for example 0.5", shape: .number(from: 0)) { text in
            number.read(text).flatMap { $0 >= 0 ? $0 : nil }
        }
    }
}
