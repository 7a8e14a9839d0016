import GattherdGATT
import Testing

@testable import GattherdSimulator

@Suite struct PlausibleValuesTests {
    @Test(arguments: [1, 2, 0xC0FF_EE00_0001] as [UInt64])
    func `a person rests, makes an effort and recovers, without jumps`(seed: UInt64) {
        let person = PersonSimulation(seed: seed)
        let rates = (0..<960).map { person.heartRate(at: Double($0)) }
        #expect(rates.allSatisfy { (48...180).contains($0) })
        #expect((rates.max() ?? 0) - (rates.min() ?? 0) > 50)
        for (one, next) in zip(rates, rates.dropFirst()) { #expect(abs(next - one) < 6) }
        #expect(PersonSimulation(seed: seed).heartRate(at: 7) == person.heartRate(at: 7))
        #expect(PersonSimulation(seed: seed &+ 5).heartRate(at: 7) != person.heartRate(at: 7))
    }

    @Test func `intervals between beats fit the heart rate`() {
        let person = PersonSimulation(seed: 3)
        for second in 0..<480 {
            let beats = 60 * 1024 / Double(person.interval(at: Double(second), beat: second))
            #expect(abs(beats - person.heartRate(at: Double(second))) < 8)
        }
    }

    @Test func `a measurement has the heart rate, the energy and the intervals of the pattern`() {
        var pattern = HeartRatePattern()
        (pattern.hasEnergy, pattern.intervals, pattern.contact) = (true, 2, .yes)
        let source = PayloadSource.person(pattern, rate: 2)
        let payload = source.payload(200, stored: [], energyReset: 100, seed: 1)
        #expect(payload.count == 8)
        #expect(payload.first == 0x1E)
        #expect(payload[2] == 7)
        #expect(payload[1] == UInt8(PersonSimulation(seed: 1).heartRate(at: 100).rounded()))
    }

    @Test func `the afternoon is warmer and drier than the night, and values do not jump`() {
        let weather = WeatherSimulation(seed: 9, day: .seconds(86_400))
        let (night, afternoon) = (21.0 * 3600, 9.0 * 3600)
        #expect(weather.temperature(at: afternoon) > weather.temperature(at: night) + 500)
        #expect(weather.humidity(at: afternoon) < weather.humidity(at: night))
        for minute in 0..<1440 {
            let (now, next) = (Double(minute) * 60, Double(minute + 1) * 60)
            #expect(abs(weather.temperature(at: next) - weather.temperature(at: now)) < 10)
            #expect((960_000...1_060_000).contains(weather.pressure(at: now) / 10 * 10))
            #expect((2000...10_000).contains(weather.humidity(at: now)))
        }
    }

    @Test func `a shorter simulated day has the same weather in less time`() {
        let long = WeatherSimulation(seed: 9, day: .seconds(86_400))
        let short = WeatherSimulation(seed: 9, day: .seconds(1200))
        #expect(long.temperature(at: 43_200) == short.temperature(at: 600))
    }
}
