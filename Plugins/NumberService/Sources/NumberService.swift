// NumberService
