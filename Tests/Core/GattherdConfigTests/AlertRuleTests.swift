import GattherdConfig
import GattherdModel
import Testing

@Suite struct AlertRuleTests {
    private static let device = "devices: [{name: freezer, address: 'C0:FF:EE:00:00:01'}]\n"

    @Test func `alerts have a condition, and defaults for the rest`() throws {
        let parsed = try parse(
            Self.device + """
                alerts:
                  - {name: a, silent_for: 10m}
                  - {name: b, battery_below: 15}
                  - {name: c, device: freezer, metric: temperature, below: -30, above: -15.5, hysteresis: 1, for: 5m}
                """
        )
        let expected = [
            AlertRule(name: "a", condition: .silent(.seconds(600))),
            AlertRule(name: "b", condition: .batteryBelow(15)),
            AlertRule(
                name: "c",
                device: "freezer",
                condition: .outside(metric: "temperature", below: -30, above: -15.5),
                hysteresis: 1,
                holding: .seconds(300)
            ),
        ]
        #expect(parsed.alerts == expected)
    }

    @Test(
        arguments: [
            ("{name: a}", "conflict"), ("{silent_for: 1m}", "missing"),
            ("{name: a, silent_for: 1m, metric: x}", "conflict"),
            ("{name: a, metric: x}", "missing"), ("{name: a, battery_below: 1, above: 2}", "missing"),
            ("{name: a, device: frezer, silent_for: 1m}", "invalid"), ("{name: a, silent_for: 0s}", "invalid"),
            ("{name: a, metric: x, above: warm}", "invalid"), ("{name: a, silent_for: 1m, zzz: 1}", "unknown"),
            ("{name: a, metric: x, below: 18, above: 22, hysteresis: 3}", "conflict"),
            ("{name: a, metric: x, below: 22, above: 18}", "conflict"),
            ("{name: a, silent_for: 1m}, {name: a, silent_for: 2m}", "duplicate"),
        ]
    )
    func `a wrong alert is reported`(alert: String, kind: String) {
        let found = errors(in: Self.device + "alerts: [\(alert)]")
        #expect(found.contains { $0.problem.kind.contains(kind) }, "\(alert): \(found)")
    }

    @Test func `bounds may leave one value that clears the alert`() {
        let alert = "alerts: [{name: a, metric: x, below: 18, above: 22, hysteresis: 2}]"
        #expect(errors(in: Self.device + alert) == [])
    }

    @Test func `a misspelt device is corrected, unless rules can add devices`() {
        let alert = "alerts: [{name: a, device: frezer, silent_for: 1m}]"
        let found = errors(in: Self.device + alert).map(\.description).joined()
        #expect(found.contains("did you mean 'freezer'?"))
        #expect(errors(in: Self.device + "enrol: [{name: 'x-{address}', match: {name: x}}]\n" + alert) == [])
    }
}
