import Glibc

/// Noise that is a function of time: smooth, between -1 and 1.
struct SmoothNoise: Sendable {
    let seed: UInt64

    /// The noise at `time`, which changes within `period` of the same unit.
    func value(at time: Double, period: Double) -> Double {
        let position = time / period
        let step = position.rounded(.down)
        let part = position - step
        let weight = part * part * (3 - 2 * part)
        return latticeValue(step) * (1 - weight) + latticeValue(step + 1) * weight
    }

    /// The pseudo-random value of a step, from -1 to 1; the same for each call.
    private func latticeValue(_ step: Double) -> Double {
        var mixed = seed &+ UInt64(bitPattern: Int64(step)) &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        mixed ^= mixed >> 31
        return Double(mixed >> 11) / Double(UInt64(1) << 52) - 1
    }
}

/// The heart rate of a person in a repeated cycle of rest, effort and recovery.
struct PersonSimulation: Sendable {
    /// The length of one round: rest, effort, recovery.
    private static let round = 480.0
    private static let (effortStart, effortEnd) = (120.0, 270.0)
    /// The times in which the heart follows a change of the effort, in seconds.
    private static let (rise, fall) = (35.0, 60.0)

    private let noise: SmoothNoise
    private let rest: Double
    private let peak: Double
    /// The person's time at the first measurement, in seconds.
    private let offset: Double

    /// - Parameter seed: Distinguishes persons.
    init(seed: UInt64) {
        noise = SmoothNoise(seed: seed)
        let one = SmoothNoise(seed: seed &+ 1)
        rest = 62 + 8 * one.value(at: 0, period: 1)
        peak = 148 + 18 * one.value(at: 1, period: 1)
        offset = (one.value(at: 2, period: 1) + 1) / 2 * Self.round
    }

    /// The heart rate in beats per minute at a time in seconds.
    func heartRate(at time: Double) -> Double {
        let now = time + offset
        let phase = now.truncatingRemainder(dividingBy: Self.round)
        let reached = 1 - exp(-(Self.effortEnd - Self.effortStart) / Self.rise)
        let effort =
            switch phase {
            case ..<Self.effortStart: reached * exp(-(Self.round - Self.effortEnd + phase) / Self.fall)
            case ..<Self.effortEnd: 1 - exp(-(phase - Self.effortStart) / Self.rise)
            default: reached * exp(-(phase - Self.effortEnd) / Self.fall)
            }
        return rest + (peak - rest) * effort + 2.5 * noise.value(at: now, period: 20)
    }

    /// The interval between two beats in units of 1/1024 s; breathing changes it.
    func interval(at time: Double, beat: Int) -> Int {
        let breath = 0.03 * sin((time + offset) * 2 * .pi / 4.2)
        let jitter = 0.01 * noise.value(at: Double(beat), period: 1)
        return Int((60 / heartRate(at: time) * (1 + breath + jitter) * 1024).rounded())
    }
}

/// The weather over a day that begins at 6 o'clock.
struct WeatherSimulation: Sendable {
    private let noise: SmoothNoise
    /// The length of a day in seconds.
    private let day: Double

    /// - Parameters:
    ///   - seed: Distinguishes places.
    ///   - day: The length of a day.
    init(seed: UInt64, day: Duration) {
        noise = SmoothNoise(seed: seed)
        self.day = max(1, day / .seconds(1))
    }

    /// The hours since midnight.
    private func hour(_ time: Double) -> Double { 6 + time / day * 24 }

    /// The temperature in 0.01 °C: coldest before sunrise, warmest in the afternoon.
    func temperature(at time: Double) -> Int {
        let hour = hour(time)
        let course = 14 + 6.5 * sin((hour - 9) * .pi / 12)
        return Int(((course + 0.8 * noise.value(at: hour, period: 1.5)) * 100).rounded())
    }

    /// The humidity in 0.01 %: low when it is warm.
    func humidity(at time: Double) -> Int {
        let hour = hour(time)
        let course = 68 - 20 * sin((hour - 9) * .pi / 12)
        return Int(((course + 3 * noise.value(at: hour + 100, period: 2)) * 100).rounded())
    }

    /// The air pressure in 0.1 Pa: weather fronts within days.
    func pressure(at time: Double) -> Int {
        let hour = hour(time)
        let course = 1013.2 + 6 * noise.value(at: hour + 200, period: 18) + 0.15 * noise.value(at: hour, period: 0.5)
        return Int((course * 1000).rounded())
    }
}
