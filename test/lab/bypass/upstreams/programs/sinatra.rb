# One protected API in Sinatra, under puma.
require 'sinatra/base'
require 'puma'
require 'puma/server'

HITS = File.open(ENV['HITS'], 'a').tap { |file| file.sync = true }

class Api < Sinatra::Base
  set :environment, :production
  set :logging, false
  set :show_exceptions, false
  set :strict_paths, false if ARGV[0] == 'loose'
  use Rack::MethodOverride if ARGV[0] == 'loose'

  def paid
    HITS.write('x')
    'paid for'
  end

  get('/v1/reports/open') { 'free' }
  get('/v1/files/public') { 'free' }
  get('/v1/export') { paid }
  get('/v1/reports/:id') { paid }
  get('/v1/files/*') { paid }
  post('/v1/teams/:team/jobs/:job') { paid }
  get('/v1/Kiss/Data') { paid }
  get('/v1/my report') { paid }
  get('/free/*') { 'free' }
  post('/free/*') { 'free' }
end

server = Puma::Server.new(Api.new, Puma::Events.strings, max_threads: 4)
server.add_tcp_listener('127.0.0.1', ENV['PORT'].to_i)
server.run.join
